-- The shard locks. Statements that write several of them take them in the order of shards.

-- A lock that somebody else is taking at this moment is passed over. A repeated call finds the lock that it has taken.
-- name: acquire
WITH
mine AS MATERIALIZED (
    SELECT shard_id FROM clepsydra.shard_locks WHERE locked AND last_lock_guid = $1
),
waiting AS MATERIALIZED (
    SELECT
        shard_id,
        CASE WHEN locked THEN last_locked_by ELSE '' END AS taken_from,
        CASE WHEN locked THEN last_lock_guid ELSE '' END AS taken_guid
    FROM clepsydra.shard_locks
    WHERE (NOT locked OR last_heartbeat_at NOT BETWEEN $4 AND $5) AND NOT EXISTS (SELECT FROM mine)
    ORDER BY last_processing_start_at, shard_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE clepsydra.shard_locks AS l
    SET locked = true,
        last_lock_guid = $1,
        last_locked_by = $2,
        last_processing_start_at = $3,
        last_heartbeat_at = $3
    FROM waiting AS w
    WHERE l.shard_id = w.shard_id
    RETURNING l.shard_id, w.taken_from, w.taken_guid
)
SELECT shard_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, taken_from, taken_guid
FROM (
    SELECT shard_id, '' AS taken_from, '' AS taken_guid FROM mine
    UNION ALL
    SELECT shard_id, taken_from, taken_guid FROM taken
) AS held
LIMIT 1;

-- name: heartbeat
WITH kept AS (
    UPDATE clepsydra.shard_locks AS l
    SET last_heartbeat_at = CASE WHEN l.last_heartbeat_at > $5 THEN $3 ELSE greatest(l.last_heartbeat_at, $3) END
    FROM unnest($1::integer[], $2::text[]) AS h (shard_id, guid)
    WHERE l.shard_id = h.shard_id AND l.locked AND l.last_lock_guid = h.guid
    RETURNING l.shard_id, l.last_heartbeat_at
)
SELECT
    (SELECT coalesce(array_agg(shard_id), '{}') FROM kept),
    (
        SELECT count(*)
        FROM clepsydra.shard_locks AS l
        LEFT JOIN kept AS k ON k.shard_id = l.shard_id
        WHERE NOT l.locked OR coalesce(k.last_heartbeat_at, l.last_heartbeat_at) NOT BETWEEN $4 AND $5
    ),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: release
UPDATE clepsydra.shard_locks AS l
SET locked = false, last_heartbeat_at = greatest(l.last_heartbeat_at, $3)
FROM unnest($1::integer[], $2::text[]) AS h (shard_id, guid)
WHERE l.shard_id = h.shard_id AND l.locked AND l.last_lock_guid = h.guid;

-- The server checks permissions, and whether it accepts writes, before it finds that there is nothing to write.
-- name: check_writable
UPDATE clepsydra.shard_locks SET locked = locked WHERE false;
