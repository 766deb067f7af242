-- Where the live rows of actions are.

-- name: versions
SELECT s.meta_action_id, s.meta_action_guid, s.status_scheduled_at
FROM temp.action_ids AS i
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = i.action_id;

-- fragment: live_row
p.shard_id, p.scheduled_at, p.action_id, p.action_guid, p.last_reschedule_at,
p.added_to_incoming_queue_at,
p.moved_from_incoming_to_processing_queue_by_sync_with_guid,
p.moved_from_incoming_to_processing_queue_at,
p.last_reschedule_by_sync_with_guid

-- SQLite keeps the order of a cross join: a range of each shard.
-- name: rows_between
SELECT
    -- include: live_row
FROM shard_locks AS l
CROSS JOIN processing_queue AS p
    ON p.shard_id = l.shard_id AND p.scheduled_at > :after AND p.scheduled_at <= :until
WHERE p.last_reschedule_at IS NOT NULL AND p.action_id IN (SELECT action_id FROM temp.action_ids);

-- name: processing_row
SELECT
    -- include: live_row
FROM shard_locks AS l
CROSS JOIN processing_queue AS p
    ON p.shard_id = l.shard_id AND p.scheduled_at >= :from AND p.scheduled_at <= :until
WHERE p.action_id = :action_id AND p.action_guid = :guid;

-- name: incoming_row
SELECT q.shard_id, q.created_at, q.scheduled_at
FROM shard_locks AS l
CROSS JOIN incoming_queue AS q ON q.shard_id = l.shard_id
WHERE q.action_id = :action_id AND q.action_guid = :guid;

-- name: lock_rows
SELECT shard_id, locked, last_lock_guid, last_locked_by, last_processing_start_at, last_heartbeat_at
FROM shard_locks
ORDER BY shard_id;
