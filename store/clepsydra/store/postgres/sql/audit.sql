-- Questions of operators about whole tables.

-- Executed before the statements below, in their transaction: the planner may choose freely again.
-- name: plan_freely
SET LOCAL plan_cache_mode = auto;
SET LOCAL enable_seqscan = on;
SET LOCAL enable_hashjoin = on;
SET LOCAL enable_mergejoin = on;
SET LOCAL enable_material = on;
SET LOCAL enable_memoize = on;
SET LOCAL enable_bitmapscan = on;
SET LOCAL join_collapse_limit = 8;
SET LOCAL statement_timeout = '10min';

-- The rows with a current guid. A status in state N starts with the bytes 08 N: see clepsydra.core.state_bytes. States 1
-- and 2 are those of actions that wait or run.
-- fragment: live_rows
live_rows AS (
    SELECT
        r.shard_id,
        r.scheduled_at,
        s.status >= '\x0801' AND s.status < '\x0803' AS is_live,
        r.scheduled_at = s.status_scheduled_at AS is_planned
    FROM (
        SELECT shard_id, action_id, action_guid, scheduled_at FROM clepsydra.incoming_queue
        UNION ALL
        SELECT shard_id, action_id, action_guid, scheduled_at FROM clepsydra.processing_queue
    ) AS r
    JOIN clepsydra.scheduled_actions AS s
        ON s.meta_action_id_hash = 0 AND s.meta_action_id = r.action_id AND s.meta_action_guid = r.action_guid
)

-- fragment: load_of_rows
count(*) FILTER (WHERE is_live AND is_planned) AS waiting,
count(*) FILTER (WHERE is_live AND NOT is_planned) AS running,
count(*) FILTER (WHERE NOT is_live) AS kept,
min(scheduled_at) FILTER (WHERE is_live AND is_planned) AS next

-- name: locks
WITH
-- include: live_rows
SELECT
    l.shard_id, l.locked, l.last_lock_guid, l.last_locked_by, l.last_processing_start_at, l.last_heartbeat_at,
    coalesce(i.n, 0), coalesce(p.n, 0), least(i.earliest, p.earliest),
    coalesce(o.waiting, 0), coalesce(o.running, 0), coalesce(o.kept, 0), o.next
FROM clepsydra.shard_locks AS l
LEFT JOIN (
    SELECT
        shard_id,
        -- include: load_of_rows
    FROM live_rows
    GROUP BY shard_id
) AS o ON o.shard_id = l.shard_id
LEFT JOIN (
    SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM clepsydra.incoming_queue GROUP BY shard_id
) AS i ON i.shard_id = l.shard_id
LEFT JOIN (
    SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM clepsydra.processing_queue GROUP BY shard_id
) AS p ON p.shard_id = l.shard_id
ORDER BY l.shard_id;

-- name: stats
SELECT
    (SELECT count(*) FROM clepsydra.scheduled_actions),
    i.n, p.n, i.due + p.due, least(i.earliest, p.earliest),
    l.n, l.locked
FROM
    (
        SELECT count(*) AS n, count(*) FILTER (WHERE scheduled_at <= $1) AS due, min(scheduled_at) AS earliest
        FROM clepsydra.incoming_queue
    ) AS i,
    (
        SELECT count(*) AS n, count(*) FILTER (WHERE scheduled_at <= $1) AS due, min(scheduled_at) AS earliest
        FROM clepsydra.processing_queue
    ) AS p,
    (SELECT count(*) AS n, count(*) FILTER (WHERE locked) AS locked FROM clepsydra.shard_locks) AS l;

-- name: load
WITH
-- include: live_rows
SELECT
    -- include: load_of_rows
    , count(*) FILTER (WHERE is_live AND is_planned AND scheduled_at <= $1)
FROM live_rows
WHERE
    -- include: in_existing_shard
;

-- name: states
SELECT substring(status FROM 1 FOR 2), count(*) FROM clepsydra.scheduled_actions GROUP BY 1;

-- A row in a shard that the installation does not have is never live.
-- fragment: in_existing_shard
shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM clepsydra.shard_locks)

-- name: audit_counts
WITH
rows AS (
    SELECT shard_id, action_id, action_guid FROM clepsydra.incoming_queue
    UNION ALL
    SELECT shard_id, action_id, action_guid FROM clepsydra.processing_queue
),
live AS (
    SELECT s.meta_action_id AS action_id, count(*) AS n
    FROM rows AS r
    JOIN clepsydra.scheduled_actions AS s
        ON s.meta_action_id_hash = 0 AND s.meta_action_id = r.action_id AND s.meta_action_guid = r.action_guid
    WHERE
        -- include: in_existing_shard
    GROUP BY s.meta_action_id
)
SELECT
    (SELECT count(*) FROM clepsydra.scheduled_actions),
    (SELECT coalesce(sum(n), 0)::bigint FROM live),
    (SELECT count(*) FROM rows),
    (SELECT count(*) FROM live),
    (SELECT count(*) FROM live WHERE n > 1),
    ARRAY(
        SELECT DISTINCT shard_id
        FROM rows
        WHERE NOT (
            -- include: in_existing_shard
        )
        ORDER BY shard_id
    ),
    (SELECT count(*) FROM clepsydra.scheduled_actions WHERE status >= '\x0807' AND status < '\x0808');

-- name: audit_violations
WITH
rows AS (
    SELECT
        true AS is_incoming, shard_id, created_at AS at, action_id, action_guid, scheduled_at,
        NULL::bigint AS rescheduled_at
    FROM clepsydra.incoming_queue
    WHERE
        -- include: in_existing_shard
    UNION ALL
    SELECT false, shard_id, scheduled_at, action_id, action_guid, scheduled_at, last_reschedule_at
    FROM clepsydra.processing_queue
    WHERE
        -- include: in_existing_shard
),
broken AS (
    SELECT s.meta_action_id AS action_id, s.meta_action_guid AS guid
    FROM clepsydra.scheduled_actions AS s
    LEFT JOIN rows AS r ON r.action_id = s.meta_action_id AND r.action_guid = s.meta_action_guid
    GROUP BY s.meta_action_id, s.meta_action_guid
    HAVING count(r.shard_id) <> 1
    ORDER BY s.meta_action_id
    LIMIT $1
)
SELECT b.action_id, b.guid, r.is_incoming, r.shard_id, r.at, r.scheduled_at, r.rescheduled_at
FROM broken AS b
LEFT JOIN rows AS r ON r.action_id = b.action_id AND r.action_guid = b.guid
ORDER BY b.action_id, r.is_incoming DESC, r.shard_id, r.at;
