-- Questions of operators about whole tables.

-- The rows with a current guid. A status in state N starts with the bytes 08 N: see clepsydra.core.state_bytes. States 1
-- and 2 are those of actions that wait or run.
-- fragment: live_rows
live_rows AS (
    SELECT
        r.shard_id AS shard_id,
        r.scheduled_at AS scheduled_at,
        s.status >= x'0801' AND s.status < x'0803' AS is_live,
        r.scheduled_at = s.status_scheduled_at AS is_planned
    FROM (
        SELECT shard_id, action_id, action_guid, scheduled_at FROM incoming_queue
        UNION ALL
        SELECT shard_id, action_id, action_guid, scheduled_at FROM processing_queue
    ) AS r
    JOIN scheduled_actions AS s
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
    coalesce(i.n, 0), coalesce(p.n, 0), coalesce(min(i.earliest, p.earliest), i.earliest, p.earliest),
    coalesce(o.waiting, 0), coalesce(o.running, 0), coalesce(o.kept, 0), o.next
FROM shard_locks AS l
LEFT JOIN (
    SELECT
        shard_id,
        -- include: load_of_rows
    FROM live_rows
    GROUP BY shard_id
) AS o ON o.shard_id = l.shard_id
LEFT JOIN (SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM incoming_queue GROUP BY shard_id) AS i
    ON i.shard_id = l.shard_id
LEFT JOIN (SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM processing_queue GROUP BY shard_id) AS p
    ON p.shard_id = l.shard_id
ORDER BY l.shard_id;

-- Rows of processing_queue are looked up in each shard by the key.
-- name: stats
SELECT
    (SELECT count(*) FROM scheduled_actions),
    i.n,
    (SELECT count(*) FROM processing_queue),
    i.due + p.due,
    coalesce(min(i.earliest, p.earliest), i.earliest, p.earliest),
    p.shards,
    p.locked
FROM (
    SELECT
        count(*) AS n, count(*) FILTER (WHERE scheduled_at <= :now) AS due, min(scheduled_at) AS earliest
    FROM incoming_queue
) AS i
CROSS JOIN (
    SELECT
        sum((SELECT count(*) FROM processing_queue AS q WHERE q.shard_id = l.shard_id AND q.scheduled_at <= :now)) AS due,
        min((SELECT min(q.scheduled_at) FROM processing_queue AS q WHERE q.shard_id = l.shard_id)) AS earliest,
        count(*) AS shards,
        sum(locked) AS locked
    FROM shard_locks AS l
) AS p;

-- name: load
WITH
-- include: live_rows
SELECT
    -- include: load_of_rows
    , count(*) FILTER (WHERE is_live AND is_planned AND scheduled_at <= :now)
FROM live_rows
WHERE
    -- include: existing_shard
;

-- name: states
SELECT coalesce(substr(status, 1, 2), x''), count(*) FROM scheduled_actions GROUP BY 1;

-- A shard that the installation has. No worker reads the others.
-- fragment: existing_shard
shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM shard_locks)

-- name: audit_counts
WITH
rows AS (
    SELECT shard_id, action_id, action_guid FROM incoming_queue
    UNION ALL
    SELECT shard_id, action_id, action_guid FROM processing_queue
),
live AS (
    SELECT s.meta_action_id AS action_id, count(*) AS n
    FROM rows AS r
    JOIN scheduled_actions AS s
        ON s.meta_action_id_hash = 0 AND s.meta_action_id = r.action_id AND s.meta_action_guid = r.action_guid
    WHERE
        -- include: existing_shard
    GROUP BY s.meta_action_id
)
SELECT
    (SELECT count(*) FROM scheduled_actions),
    (SELECT coalesce(sum(n), 0) FROM live),
    (SELECT count(*) FROM rows),
    (SELECT count(*) FROM live),
    (SELECT count(*) FROM live WHERE n > 1),
    (SELECT count(*) FROM scheduled_actions WHERE status >= x'0807' AND status < x'0808');

-- name: audit_stray_shards
SELECT shard_id FROM incoming_queue WHERE shard_id > (SELECT max(shard_id) FROM shard_locks)
UNION
SELECT shard_id FROM processing_queue WHERE shard_id > (SELECT max(shard_id) FROM shard_locks)
UNION
SELECT shard_id FROM incoming_queue WHERE shard_id < 0
UNION
SELECT shard_id FROM processing_queue WHERE shard_id < 0
ORDER BY shard_id;

-- name: audit_violations
WITH rows AS (
    SELECT 1 AS is_incoming, shard_id, created_at AS at, action_id, action_guid, scheduled_at, NULL AS rescheduled_at
    FROM incoming_queue
    WHERE
        -- include: existing_shard
    UNION ALL
    SELECT 0, shard_id, scheduled_at, action_id, action_guid, scheduled_at, last_reschedule_at
    FROM processing_queue
    WHERE
        -- include: existing_shard
)
SELECT
    s.meta_action_id, s.meta_action_guid,
    json_group_array(json_array(r.is_incoming, r.shard_id, r.at, r.scheduled_at, r.rescheduled_at))
        FILTER (WHERE r.shard_id IS NOT NULL)
FROM scheduled_actions AS s
LEFT JOIN rows AS r ON r.action_id = s.meta_action_id AND r.action_guid = s.meta_action_guid
GROUP BY s.meta_action_id
HAVING count(r.shard_id) <> 1
ORDER BY s.meta_action_id
LIMIT :limit;
