-- The four tables. Times are UTC microseconds.

-- A rowid table with its key as an index: records lie in the order of their creation, in which they also come due
-- more often than not, and large payloads do not fatten the index. The hash spreads keys over the partitions of a
-- distributed store; one B-tree on one disk wants neighbours together, so here it is always 0.
CREATE TABLE scheduled_actions (
    meta_action_id_hash INTEGER NOT NULL,
    meta_action_id TEXT NOT NULL,
    meta BLOB NOT NULL,
    meta_action_guid TEXT NOT NULL,
    spec BLOB NOT NULL,
    status BLOB NOT NULL,
    status_scheduled_at INTEGER NOT NULL,
    PRIMARY KEY (meta_action_id_hash, meta_action_id)
) STRICT;

CREATE TABLE incoming_queue (
    shard_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    action_id TEXT NOT NULL,
    action_guid TEXT NOT NULL,
    scheduled_at INTEGER NOT NULL,
    PRIMARY KEY (shard_id, created_at, action_id, action_guid)
) STRICT, WITHOUT ROWID;

CREATE TABLE processing_queue (
    shard_id INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    action_id TEXT NOT NULL,
    action_guid TEXT NOT NULL,
    added_to_incoming_queue_at INTEGER NOT NULL,
    moved_from_incoming_to_processing_queue_by_sync_with_guid TEXT,
    moved_from_incoming_to_processing_queue_at INTEGER,
    last_reschedule_by_sync_with_guid TEXT,
    last_reschedule_at INTEGER,
    PRIMARY KEY (shard_id, scheduled_at, action_id, action_guid)
) STRICT, WITHOUT ROWID;

CREATE TABLE shard_locks (
    shard_id INTEGER NOT NULL PRIMARY KEY,
    locked INTEGER NOT NULL,
    last_lock_guid TEXT NOT NULL,
    last_locked_by TEXT NOT NULL,
    last_processing_start_at INTEGER NOT NULL,
    last_heartbeat_at INTEGER NOT NULL
) STRICT;
