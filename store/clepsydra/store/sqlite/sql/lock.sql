-- The shard locks.

-- fragment: available
(locked = 0 OR last_heartbeat_at NOT BETWEEN :stale_before AND :fresh_until)

-- fragment: held
locked = 1 AND (shard_id, last_lock_guid) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:locks))

-- name: lock_is_available
SELECT EXISTS (
    SELECT 1 FROM shard_locks
    WHERE last_lock_guid = :guid OR
        -- include: available
);

-- name: lock_with_guid
SELECT shard_id FROM shard_locks WHERE locked = 1 AND last_lock_guid = :guid;

-- name: first_available_lock
SELECT shard_id, iif(locked, last_locked_by, ''), iif(locked, last_lock_guid, '') FROM shard_locks
WHERE
    -- include: available
ORDER BY last_processing_start_at, shard_id
LIMIT 1;

-- name: acquire
UPDATE shard_locks
SET locked = 1,
    last_lock_guid = :guid,
    last_locked_by = :worker,
    last_processing_start_at = :now,
    last_heartbeat_at = :now
WHERE shard_id = :shard_id;

-- name: heartbeat
UPDATE shard_locks
SET last_heartbeat_at = CASE WHEN last_heartbeat_at > :fresh_until THEN :now ELSE max(last_heartbeat_at, :now) END
WHERE
    -- include: held
RETURNING shard_id;

-- name: waiting_shards
SELECT count(*) FROM shard_locks
WHERE
    -- include: available
;

-- name: release
UPDATE shard_locks SET locked = 0, last_heartbeat_at = max(last_heartbeat_at, :now)
WHERE
    -- include: held
;

-- Changes nothing, but is refused where nothing may be changed.
-- name: check_writable
UPDATE shard_locks SET locked = locked WHERE false;
