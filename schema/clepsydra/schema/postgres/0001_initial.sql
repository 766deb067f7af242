-- The four tables of an installation, in a schema of its own. Times are UTC microseconds; to read them by hand:
--     SELECT action_id, to_timestamp(scheduled_at / 1e6) FROM clepsydra.processing_queue;
-- Text is compared byte by byte, whatever the database's collation: keys sort alike on every server and in Python.

-- The hash spreads keys over the partitions of a distributed store; one B-tree wants neighbours together, so here it
-- is always 0. Pages keep room for a second version of all their rows, because they end together: the new status of
-- an action then needs no new entry in the index.
CREATE TABLE clepsydra.scheduled_actions (
    meta_action_id_hash smallint NOT NULL,
    meta_action_id text COLLATE "C" NOT NULL,
    meta bytea NOT NULL,
    meta_action_guid text COLLATE "C" NOT NULL,
    spec bytea NOT NULL,
    status bytea NOT NULL,
    status_scheduled_at bigint NOT NULL,
    PRIMARY KEY (meta_action_id_hash, meta_action_id)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- A queue is emptied all day, so what is dead in it soon outweighs what is alive: it is vacuumed by the number of dead
-- rows and not by their share, at full speed, and is never cut at its end, which would lock everybody out for a while.
CREATE TABLE clepsydra.incoming_queue (
    shard_id integer NOT NULL,
    created_at bigint NOT NULL,
    action_id text COLLATE "C" NOT NULL,
    action_guid text COLLATE "C" NOT NULL,
    scheduled_at bigint NOT NULL,
    PRIMARY KEY (shard_id, created_at, action_id, action_guid)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000000,
    vacuum_truncate = off
);

CREATE TABLE clepsydra.processing_queue (
    shard_id integer NOT NULL,
    scheduled_at bigint NOT NULL,
    action_id text COLLATE "C" NOT NULL,
    action_guid text COLLATE "C" NOT NULL,
    added_to_incoming_queue_at bigint NOT NULL,
    moved_from_incoming_to_processing_queue_by_sync_with_guid text COLLATE "C",
    moved_from_incoming_to_processing_queue_at bigint,
    last_reschedule_by_sync_with_guid text COLLATE "C",
    last_reschedule_at bigint,
    PRIMARY KEY (shard_id, scheduled_at, action_id, action_guid)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000000,
    vacuum_truncate = off
);

-- A few rows that are written every few seconds: a page has room for many versions of each.
CREATE TABLE clepsydra.shard_locks (
    shard_id integer NOT NULL PRIMARY KEY,
    locked boolean NOT NULL,
    last_lock_guid text COLLATE "C" NOT NULL,
    last_locked_by text COLLATE "C" NOT NULL,
    last_processing_start_at bigint NOT NULL,
    last_heartbeat_at bigint NOT NULL
) WITH (
    fillfactor = 20,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    vacuum_truncate = off
);

COMMENT ON TABLE clepsydra.shard_locks IS 'Clepsydra schema version 1';
