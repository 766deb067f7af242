-- Every call is one statement, and so one snapshot, one transaction and one round trip; it takes its whole batch as
-- arrays. The statements name the schema `clepsydra`; for an installation in another one, its name takes that place.
--
-- What a statement will write it locks first, in the order of its arrays, which come sorted by action id: an action
-- before its row. Nothing is written before everything is locked, because nothing reads what the writing parts return;
-- so no two statements can wait for each other in a circle. docs/decisions/ tells the races one by one.
--
-- Lookups by key are LATERAL … LIMIT 1 so that they can only be planned as index lookups, whatever the planner
-- believes about tables that grow and shrink by the second.

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- done: by an earlier try; late: older than a call may be retried; lost: somebody else changes the action at this
-- moment, so it must be judged anew. What went well is not returned.
-- name: put
WITH
puts AS MATERIALIZED (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bigint[],
        $7::integer[], $8::bigint[], $9::text[], $10::bigint[], $11::bytea[]
    ) WITH ORDINALITY AS p (
        action_id, guid, meta, spec, status, scheduled_at,
        shard_id, created_at, seen_guid, seen_scheduled_at, seen_meta, n
    )
),
judged AS MATERIALIZED (
    SELECT
        p.*, s.*,
        CASE
            WHEN l.version IS DISTINCT FROM s.version THEN 'lost'
            WHEN p.shard_id IS NULL AND s.current_meta = p.meta THEN 'done'
            WHEN p.shard_id IS NOT NULL AND s.current_guid = p.guid THEN 'done'
            WHEN p.created_at < (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) - $12::bigint
                THEN 'late'
            WHEN p.shard_id IS NULL THEN CASE WHEN s.current_meta = p.seen_meta THEN 'relabel' ELSE 'conflict' END
            WHEN s.current_guid IS NULL AND p.seen_guid IS NULL THEN 'create'
            WHEN s.current_guid = p.seen_guid
                AND s.current_scheduled_at = p.seen_scheduled_at
                AND s.current_meta = p.seen_meta THEN 'change'
            ELSE 'conflict'
        END AS judgement
    FROM puts AS p
    LEFT JOIN LATERAL (
        SELECT
            ctid AS version, meta_action_guid AS current_guid, meta AS current_meta, spec AS current_spec,
            status AS current_status, status_scheduled_at AS current_scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = p.action_id
        LIMIT 1
    ) AS s ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.scheduled_actions
        WHERE s.version IS NOT NULL AND meta_action_id_hash = 0 AND meta_action_id = p.action_id
        LIMIT 1
        FOR UPDATE
    ) AS l ON true
),
created AS (
    INSERT INTO clepsydra.scheduled_actions (
        meta_action_id_hash, meta_action_id, meta, meta_action_guid, spec, status, status_scheduled_at
    )
    SELECT 0, action_id, meta, guid, spec, status, scheduled_at FROM judged WHERE judgement = 'create' ORDER BY n
    ON CONFLICT DO NOTHING
    RETURNING meta_action_id
),
changed AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET meta = j.meta,
        meta_action_guid = j.guid,
        spec = j.spec,
        status = j.status,
        status_scheduled_at = j.scheduled_at
    FROM judged AS j
    WHERE j.judgement = 'change' AND s.ctid = j.version
),
relabelled AS (
    UPDATE clepsydra.scheduled_actions AS s SET meta = j.meta
    FROM judged AS j
    WHERE j.judgement = 'relabel' AND s.ctid = j.version
),
appended AS (
    INSERT INTO clepsydra.incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
    SELECT shard_id, created_at, action_id, guid, scheduled_at
    FROM judged
    WHERE judgement = 'change' OR (judgement = 'create' AND action_id IN (SELECT meta_action_id FROM created))
)
SELECT
    n - 1, CASE judgement WHEN 'create' THEN 'lost' ELSE judgement END,
    current_guid, current_meta, current_spec, current_status, current_scheduled_at
FROM judged
WHERE judgement IN ('late', 'conflict', 'lost')
    OR (judgement = 'create' AND action_id NOT IN (SELECT meta_action_id FROM created));

-- name: get
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM clepsydra.scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = ANY ($1::text[]);

-- name: list_actions
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM clepsydra.scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id > $1
ORDER BY meta_action_id
LIMIT $2;

-- Of the locks that somebody else is taking at this moment none is waited for.
-- name: acquire
WITH
mine AS MATERIALIZED (
    SELECT shard_id FROM clepsydra.shard_locks WHERE locked AND last_lock_guid = $1
),
waiting AS MATERIALIZED (
    SELECT shard_id
    FROM clepsydra.shard_locks
    WHERE (NOT locked OR last_heartbeat_at < $4) AND NOT EXISTS (SELECT FROM mine)
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
    RETURNING l.shard_id
)
SELECT shard_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM (SELECT shard_id FROM mine UNION ALL SELECT shard_id FROM taken) AS held
LIMIT 1;

-- name: heartbeat
WITH kept AS (
    UPDATE clepsydra.shard_locks AS l
    SET last_heartbeat_at = greatest(l.last_heartbeat_at, $3)
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
        WHERE NOT l.locked OR coalesce(k.last_heartbeat_at, l.last_heartbeat_at) < $4
    ),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- name: release
UPDATE clepsydra.shard_locks AS l
SET locked = false, last_heartbeat_at = greatest(l.last_heartbeat_at, $3)
FROM unnest($1::integer[], $2::text[]) AS h (shard_id, guid)
WHERE l.shard_id = h.shard_id AND l.locked AND l.last_lock_guid = h.guid;

-- name: due
(
    SELECT
        true, q.created_at, q.action_id, q.action_guid, q.scheduled_at, NULL::bigint,
        s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT created_at, action_id, action_guid, scheduled_at
        FROM clepsydra.incoming_queue
        WHERE shard_id = $1 AND created_at >= $2
        ORDER BY created_at, action_id, action_guid
        LIMIT $3
    ) AS q
    LEFT JOIN LATERAL (
        SELECT meta, spec, status, status_scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = q.action_id AND meta_action_guid = q.action_guid
        LIMIT 1
    ) AS s ON true
    ORDER BY q.created_at, q.action_id, q.action_guid
)
UNION ALL
(
    SELECT
        false, q.scheduled_at, q.action_id, q.action_guid, q.scheduled_at, q.last_reschedule_at,
        s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT scheduled_at, action_id, action_guid, last_reschedule_at
        FROM clepsydra.processing_queue
        WHERE shard_id = $1 AND scheduled_at BETWEEN $4 AND $5
        ORDER BY scheduled_at, action_id, action_guid
        LIMIT $6
    ) AS q
    LEFT JOIN LATERAL (
        SELECT meta, spec, status, status_scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = q.action_id AND meta_action_guid = q.action_guid
        LIMIT 1
    ) AS s ON true
    ORDER BY q.scheduled_at, q.action_id, q.action_guid
);

-- name: migrate
WITH
seen AS MATERIALIZED (
    SELECT q.version
    FROM unnest($1::integer[], $2::bigint[], $3::text[], $4::text[]) AS k (shard_id, at, action_id, guid)
    CROSS JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.incoming_queue
        WHERE shard_id = k.shard_id AND created_at = k.at AND action_id = k.action_id AND action_guid = k.guid
        LIMIT 1
    ) AS q
),
moved AS (
    DELETE FROM clepsydra.incoming_queue AS q USING seen AS s
    WHERE q.ctid = s.version
    RETURNING q.shard_id, q.created_at, q.action_id, q.action_guid, q.scheduled_at
),
entered AS (
    INSERT INTO clepsydra.processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at,
        moved_from_incoming_to_processing_queue_by_sync_with_guid,
        moved_from_incoming_to_processing_queue_at
    )
    SELECT shard_id, scheduled_at, action_id, action_guid, created_at, $5, $6 FROM moved
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM moved;

-- name: advance
WITH
advances AS MATERIALIZED (
    SELECT *, to_at IS NULL OR status IS NOT NULL AS writes_action
    FROM unnest(
        $1::boolean[], $2::integer[], $3::bigint[], $4::text[], $5::text[],
        $6::bigint[], $7::bigint[], $8::bytea[], $9::bigint[]
    ) WITH ORDINALITY AS a (
        is_incoming, shard_id, at, action_id, guid, to_at, seen_scheduled_at, status, status_scheduled_at, n
    )
),
judged AS MATERIALIZED (
    SELECT
        a.*,
        s.version AS action_version,
        coalesce(i.version, p.version) AS row_version,
        CASE
            WHEN x.is_there OR (a.writes_action AND l.version IS DISTINCT FROM s.version) THEN 'lost'
            WHEN i.version IS NULL AND p.version IS NULL THEN CASE WHEN t.is_there THEN 'done' ELSE 'gone' END
            WHEN s.guid IS DISTINCT FROM a.guid THEN 'stale'
            WHEN a.seen_scheduled_at <> s.scheduled_at THEN 'gone'
            WHEN a.to_at IS NULL THEN 'remove'
            ELSE 'move'
        END AS judgement
    FROM advances AS a
    LEFT JOIN LATERAL (
        SELECT ctid AS version, meta_action_guid AS guid, status_scheduled_at AS scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = a.action_id
        LIMIT 1
    ) AS s ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.scheduled_actions
        WHERE a.writes_action AND s.version IS NOT NULL AND meta_action_id_hash = 0 AND meta_action_id = a.action_id
        LIMIT 1
        FOR UPDATE
    ) AS l ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.incoming_queue
        WHERE a.is_incoming
            AND shard_id = a.shard_id AND created_at = a.at AND action_id = a.action_id AND action_guid = a.guid
        LIMIT 1
        FOR UPDATE
    ) AS i ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.processing_queue
        WHERE NOT a.is_incoming
            AND shard_id = a.shard_id AND scheduled_at = a.at AND action_id = a.action_id AND action_guid = a.guid
        LIMIT 1
        FOR UPDATE
    ) AS p ON true
    LEFT JOIN LATERAL (
        SELECT true AS is_there
        WHERE i.version IS NULL AND p.version IS NULL AND (
            EXISTS (
                SELECT FROM clepsydra.incoming_queue AS q
                WHERE a.is_incoming
                    AND q.shard_id = a.shard_id AND q.created_at = a.at
                    AND q.action_id = a.action_id AND q.action_guid = a.guid
            )
            OR EXISTS (
                SELECT FROM clepsydra.processing_queue AS q
                WHERE NOT a.is_incoming
                    AND q.shard_id = a.shard_id AND q.scheduled_at = a.at
                    AND q.action_id = a.action_id AND q.action_guid = a.guid
            )
        )
    ) AS x ON true
    LEFT JOIN LATERAL (
        SELECT true AS is_there
        FROM clepsydra.processing_queue AS q
        WHERE i.version IS NULL AND p.version IS NULL
            AND q.shard_id = a.shard_id AND q.scheduled_at = a.to_at
            AND q.action_id = a.action_id AND q.action_guid = a.guid
            AND q.last_reschedule_by_sync_with_guid = $10 AND q.last_reschedule_at = $11
        LIMIT 1
    ) AS t ON true
),
moved AS (
    UPDATE clepsydra.processing_queue AS q
    SET scheduled_at = j.to_at, last_reschedule_by_sync_with_guid = $10, last_reschedule_at = $11
    FROM judged AS j
    WHERE j.judgement = 'move' AND NOT j.is_incoming AND q.ctid = j.row_version
),
entered AS (
    INSERT INTO clepsydra.processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
    )
    SELECT shard_id, to_at, action_id, guid, at, $10, $11 FROM judged WHERE judgement = 'move' AND is_incoming
),
left_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q USING judged AS j
    WHERE j.judgement IN ('move', 'remove', 'stale') AND j.is_incoming AND q.ctid = j.row_version
),
left_processing AS (
    DELETE FROM clepsydra.processing_queue AS q USING judged AS j
    WHERE j.judgement IN ('remove', 'stale') AND NOT j.is_incoming AND q.ctid = j.row_version
),
written AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET status = j.status, status_scheduled_at = j.status_scheduled_at
    FROM judged AS j
    WHERE j.judgement = 'move' AND j.writes_action AND s.ctid = j.action_version
),
removed AS (
    DELETE FROM clepsydra.scheduled_actions AS s USING judged AS j
    WHERE j.judgement = 'remove' AND s.ctid = j.action_version
)
SELECT n - 1, judgement FROM judged WHERE judgement IN ('stale', 'gone', 'lost');
