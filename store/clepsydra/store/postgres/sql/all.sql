-- Every call is one statement: one snapshot, one transaction, one round trip. It takes its whole batch as arrays, which
-- come sorted by action id; those of numbers and texts come as text, see columns.py. The statements name the schema
-- clepsydra; for an installation in another schema, that name takes its place when this file is loaded.
--
-- A batch is judged by what the statement's snapshot shows. An action that is to be written is locked while it is judged,
-- in the order of action ids and before its row. A row needs no lock: it never changes under its key, so a write finds it
-- as it was seen, or does not find it. What turns out to have changed since the snapshot is `lost`: nothing is written for
-- it, and it is judged anew by a statement of its own. docs/decisions/ tells the races one by one.
--
-- Whatever the planner believes about tables that grow and shrink by the second, it can only plan lookups. Those that read
-- are LATERAL with LIMIT 1. Actions that were locked are written by `ctid`, the place of the very version that was locked.
-- All else is written by a range from a key to that key, which unlike an equation can be read in one direction only: from
-- the batch to the table.

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- The arrays in the statements below of which the driver knows nothing until it has asked.
-- name: meet_arrays
SELECT $1::bytea[], $2::integer[];

-- done: by an earlier try; late: older than a call may be retried; lost: somebody else changes the action at this
-- moment, so it must be judged anew. What went well is not returned.
-- A creation that is not late is not looked up before: whether the id is free shows when it is inserted.
-- name: put
WITH
judged AS MATERIALIZED (
    SELECT
        p.*, s.*,
        CASE
            WHEN l.version IS DISTINCT FROM s.version THEN 'lost'
            WHEN p.shard_id IS NULL AND s.current_meta = p.meta THEN 'done'
            WHEN p.shard_id IS NOT NULL AND s.current_guid = p.guid THEN 'done'
            WHEN p.created_at < c.oldest THEN 'late'
            WHEN p.shard_id IS NULL THEN CASE WHEN s.current_meta = p.seen_meta THEN 'relabel' ELSE 'conflict' END
            WHEN p.seen_guid IS NULL THEN 'create'
            WHEN s.current_guid = p.seen_guid
                AND s.current_scheduled_at = p.seen_scheduled_at
                AND s.current_meta = p.seen_meta THEN 'change'
            ELSE 'conflict'
        END AS judgement
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $12::bigint AS oldest) AS c
    CROSS JOIN unnest(
        $1::text::text[], $2::text::text[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text::bigint[],
        $7::text::integer[], $8::text::bigint[], $9::text[], $10::text::bigint[], $11::bytea[]
    ) WITH ORDINALITY AS p (
        action_id, guid, meta, spec, status, scheduled_at,
        shard_id, created_at, seen_guid, seen_scheduled_at, seen_meta, n
    )
    LEFT JOIN LATERAL (
        SELECT
            ctid AS version, meta_action_guid AS current_guid, meta AS current_meta, spec AS current_spec,
            status AS current_status, status_scheduled_at AS current_scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE (p.shard_id IS NULL OR p.seen_guid IS NOT NULL OR p.created_at < c.oldest)
            AND meta_action_id_hash = 0 AND meta_action_id = p.action_id
        LIMIT 1
    ) AS s ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version FROM clepsydra.scheduled_actions WHERE ctid = s.version LIMIT 1 FOR UPDATE
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
SELECT n - 1, judgement, current_guid, current_meta, current_spec, current_status, current_scheduled_at
FROM judged
WHERE judgement IN ('late', 'conflict', 'lost')
UNION ALL
SELECT
    j.n - 1, CASE WHEN s.meta_action_guid IS NULL THEN 'lost' ELSE 'conflict' END,
    s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM judged AS j
LEFT JOIN LATERAL (
    SELECT meta_action_guid, meta, spec, status, status_scheduled_at
    FROM clepsydra.scheduled_actions
    WHERE meta_action_id_hash = 0 AND meta_action_id = j.action_id
    LIMIT 1
) AS s ON true
WHERE j.judgement = 'create' AND j.action_id NOT IN (SELECT meta_action_id FROM created)
    AND s.meta_action_guid IS DISTINCT FROM j.guid;

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

-- name: soon
SELECT created_at, action_id, action_guid, scheduled_at
FROM clepsydra.incoming_queue
WHERE shard_id = $1 AND created_at >= $2 AND scheduled_at <= $3
ORDER BY created_at, action_id, action_guid
LIMIT $4;

-- name: migrate
WITH
keys AS MATERIALIZED (
    SELECT *
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[]
    ) AS k (shard_id, created_at, scheduled_at, action_id, guid)
),
moved AS (
    DELETE FROM clepsydra.incoming_queue AS q USING keys AS k
    WHERE (q.shard_id, q.created_at, q.action_id, q.action_guid)
            BETWEEN (k.shard_id, k.created_at, k.action_id, k.guid)
            AND (k.shard_id, k.created_at, k.action_id, k.guid)
    RETURNING q.shard_id, q.created_at, q.action_id, q.action_guid, q.scheduled_at
),
entered AS (
    INSERT INTO clepsydra.processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at,
        moved_from_incoming_to_processing_queue_by_sync_with_guid,
        moved_from_incoming_to_processing_queue_at
    )
    SELECT shard_id, scheduled_at, action_id, action_guid, created_at, $6, $7 FROM moved
    ON CONFLICT DO NOTHING
)
SELECT count(*) FROM moved;

-- name: drop
WITH
keys AS MATERIALIZED (
    SELECT *
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[]
    ) AS k (shard_id, created_at, scheduled_at, action_id, guid)
),
dropped_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q USING keys AS k
    WHERE k.created_at IS NOT NULL
        AND (q.shard_id, q.created_at, q.action_id, q.action_guid)
            BETWEEN (k.shard_id, k.created_at, k.action_id, k.guid)
            AND (k.shard_id, k.created_at, k.action_id, k.guid)
),
dropped_processing AS (
    DELETE FROM clepsydra.processing_queue AS q USING keys AS k
    WHERE k.scheduled_at IS NOT NULL
        AND (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
            BETWEEN (k.shard_id, k.scheduled_at, k.action_id, k.guid)
            AND (k.shard_id, k.scheduled_at, k.action_id, k.guid)
)
SELECT;

-- What most batches of advances come to: all are of one kind, and nothing stands in their way. These say how many were carried
-- out; if that is not all, the batch is judged by `advance`, under the same mark.
-- name: begin_from_incoming
WITH
left_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q
    USING unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[]
    ) AS a (shard_id, created_at, action_id, guid, to_at)
    CROSS JOIN LATERAL (
        SELECT true
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = a.action_id AND meta_action_guid = a.guid
        LIMIT 1
    ) AS s
    WHERE (q.shard_id, q.created_at, q.action_id, q.action_guid)
            BETWEEN (a.shard_id, a.created_at, a.action_id, a.guid)
            AND (a.shard_id, a.created_at, a.action_id, a.guid)
    RETURNING a.*
),
entered AS (
    INSERT INTO clepsydra.processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
    )
    SELECT shard_id, to_at, action_id, guid, created_at, $6, $7 FROM left_incoming
)
SELECT count(*) FROM left_incoming;

-- name: begin_in_processing
WITH
moved AS (
    UPDATE clepsydra.processing_queue AS q
    SET scheduled_at = a.to_at, last_reschedule_by_sync_with_guid = $6, last_reschedule_at = $7
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[]
    ) AS a (shard_id, scheduled_at, action_id, guid, to_at)
    CROSS JOIN LATERAL (
        SELECT true
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = a.action_id AND meta_action_guid = a.guid
        LIMIT 1
    ) AS s
    WHERE (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
            BETWEEN (a.shard_id, a.scheduled_at, a.action_id, a.guid)
            AND (a.shard_id, a.scheduled_at, a.action_id, a.guid)
    RETURNING true
)
SELECT count(*) FROM moved;

-- An action is written, and so locked, before it is known whether its row can be moved. So this does all or nothing: the last
-- parameter, which says why, is no number, and to read it as one takes the statement back.
-- name: finish_in_processing
WITH
written AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET status = a.status, status_scheduled_at = a.status_scheduled_at
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[],
        $6::text::bigint[], $7::bytea[], $8::text::bigint[]
    ) AS a (shard_id, scheduled_at, action_id, guid, to_at, seen_scheduled_at, status, status_scheduled_at)
    WHERE (s.meta_action_id_hash, s.meta_action_id) BETWEEN (0::smallint, a.action_id) AND (0::smallint, a.action_id)
        AND s.meta_action_guid = a.guid AND s.status_scheduled_at = a.seen_scheduled_at
    RETURNING a.shard_id, a.scheduled_at, a.action_id, a.guid, a.to_at
),
moved AS (
    UPDATE clepsydra.processing_queue AS q
    SET scheduled_at = w.to_at, last_reschedule_by_sync_with_guid = $9, last_reschedule_at = $10
    FROM written AS w
    WHERE (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
            BETWEEN (w.shard_id, w.scheduled_at, w.action_id, w.guid)
            AND (w.shard_id, w.scheduled_at, w.action_id, w.guid)
    RETURNING true
)
SELECT CASE WHEN count(*) = $11::integer THEN count(*) ELSE $12::text::integer END FROM moved;

-- An ordinary begin and an extension lock no action: it is looked at in the snapshot alone. An action is written only if its
-- row was touched. What was not touched and is in the snapshot has just been taken by somebody else. What went well is not
-- returned.
-- name: advance
WITH
judged AS MATERIALIZED (
    SELECT
        a.*,
        s.version,
        CASE
            WHEN l.version IS DISTINCT FROM s.version AND (a.to_at IS NULL OR a.status IS NOT NULL) THEN 'lost'
            WHEN s.guid IS DISTINCT FROM a.guid THEN 'stale'
            WHEN a.seen_scheduled_at <> s.scheduled_at THEN 'gone'
            WHEN a.to_at IS NULL THEN 'remove'
            ELSE 'move'
        END AS judgement
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[],
        $6::text::bigint[], $7::text::bigint[], $8::bytea[], $9::text::bigint[]
    ) WITH ORDINALITY AS a (
        shard_id, created_at, scheduled_at, action_id, guid, to_at, seen_scheduled_at, status, status_scheduled_at, n
    )
    LEFT JOIN LATERAL (
        SELECT ctid AS version, meta_action_guid AS guid, status_scheduled_at AS scheduled_at
        FROM clepsydra.scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = a.action_id
        LIMIT 1
    ) AS s ON true
    LEFT JOIN LATERAL (
        SELECT ctid AS version
        FROM clepsydra.scheduled_actions
        WHERE (a.to_at IS NULL OR a.status IS NOT NULL) AND ctid = s.version
        LIMIT 1
        FOR UPDATE
    ) AS l ON true
),
moved AS (
    UPDATE clepsydra.processing_queue AS q
    SET scheduled_at = j.to_at, last_reschedule_by_sync_with_guid = $10, last_reschedule_at = $11
    FROM judged AS j
    WHERE j.judgement = 'move' AND j.scheduled_at IS NOT NULL
        AND (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
            BETWEEN (j.shard_id, j.scheduled_at, j.action_id, j.guid)
            AND (j.shard_id, j.scheduled_at, j.action_id, j.guid)
    RETURNING j.n, j.judgement, j.version, j.status, j.status_scheduled_at
),
left_processing AS (
    DELETE FROM clepsydra.processing_queue AS q USING judged AS j
    WHERE j.judgement IN ('remove', 'stale') AND j.scheduled_at IS NOT NULL
        AND (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
            BETWEEN (j.shard_id, j.scheduled_at, j.action_id, j.guid)
            AND (j.shard_id, j.scheduled_at, j.action_id, j.guid)
    RETURNING j.n, j.judgement, j.version, j.status, j.status_scheduled_at
),
left_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q USING judged AS j
    WHERE j.judgement IN ('move', 'remove', 'stale') AND j.created_at IS NOT NULL
        AND (q.shard_id, q.created_at, q.action_id, q.action_guid)
            BETWEEN (j.shard_id, j.created_at, j.action_id, j.guid)
            AND (j.shard_id, j.created_at, j.action_id, j.guid)
    RETURNING
        j.n, j.judgement, j.version, j.status, j.status_scheduled_at,
        j.shard_id, j.created_at, j.action_id, j.guid, j.to_at
),
entered AS (
    INSERT INTO clepsydra.processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
    )
    SELECT shard_id, to_at, action_id, guid, created_at, $10, $11 FROM left_incoming WHERE judgement = 'move'
),
touched AS NOT MATERIALIZED (
    SELECT n, judgement, version, status, status_scheduled_at FROM moved
    UNION ALL
    SELECT n, judgement, version, status, status_scheduled_at FROM left_processing
    UNION ALL
    SELECT n, judgement, version, status, status_scheduled_at FROM left_incoming
),
written AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET status = t.status, status_scheduled_at = t.status_scheduled_at
    FROM touched AS t
    WHERE t.judgement = 'move' AND t.status IS NOT NULL AND s.ctid = t.version
),
removed AS (
    DELETE FROM clepsydra.scheduled_actions AS s USING touched AS t
    WHERE t.judgement = 'remove' AND s.ctid = t.version
),
-- Grouped though each is there once: so the planner expects few of them. For a ninth of the table, which is what it takes
-- the range of a key for, it would set aside megabytes at every call, or, where those are too many, not hash them at all.
places AS MATERIALIZED (
    SELECT n FROM touched GROUP BY n
),
failed AS (
    SELECT *, n IN (SELECT n FROM places) AS is_touched
    FROM judged
    WHERE judgement IN ('lost', 'stale') OR n NOT IN (SELECT n FROM places)
)
SELECT
    f.n - 1,
    CASE
        WHEN f.judgement = 'lost' OR f.is_touched THEN f.judgement
        WHEN i.is_there OR p.is_there THEN CASE f.judgement WHEN 'gone' THEN 'gone' ELSE 'lost' END
        ELSE 'gone'
    END
FROM failed AS f
LEFT JOIN LATERAL (
    SELECT true AS is_there
    FROM clepsydra.incoming_queue
    WHERE shard_id = f.shard_id AND created_at = f.created_at AND action_id = f.action_id AND action_guid = f.guid
    LIMIT 1
) AS i ON true
LEFT JOIN LATERAL (
    SELECT true AS is_there
    FROM clepsydra.processing_queue
    WHERE shard_id = f.shard_id AND scheduled_at = f.scheduled_at AND action_id = f.action_id AND action_guid = f.guid
    LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
    SELECT true AS is_there
    FROM clepsydra.processing_queue
    WHERE shard_id = f.shard_id AND scheduled_at = f.to_at AND action_id = f.action_id AND action_guid = f.guid
        AND last_reschedule_by_sync_with_guid = $10 AND last_reschedule_at = $11
    LIMIT 1
) AS t ON true
WHERE f.judgement = 'lost' OR f.is_touched OR i.is_there OR p.is_there OR t.is_there IS NULL;

-- A damaged installation may have two live rows of an action. Where one of them is to move onto the other, the other goes.
-- name: make_room
WITH
sources AS MATERIALIZED (
    SELECT a.shard_id, a.to_at AS scheduled_at, a.action_id, a.guid
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[],
        $6::text::bigint[]
    ) AS a (shard_id, created_at, scheduled_at, action_id, guid, to_at)
    LEFT JOIN LATERAL (
        SELECT true AS is_there
        FROM clepsydra.incoming_queue
        WHERE shard_id = a.shard_id AND created_at = a.created_at
            AND action_id = a.action_id AND action_guid = a.guid
        LIMIT 1
        FOR UPDATE
    ) AS i ON true
    LEFT JOIN LATERAL (
        SELECT true AS is_there
        FROM clepsydra.processing_queue
        WHERE shard_id = a.shard_id AND scheduled_at = a.scheduled_at
            AND action_id = a.action_id AND action_guid = a.guid
        LIMIT 1
        FOR UPDATE
    ) AS p ON true
    WHERE i.is_there OR p.is_there
)
DELETE FROM clepsydra.processing_queue AS q USING sources AS s
WHERE (q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
        BETWEEN (s.shard_id, s.scheduled_at, s.action_id, s.guid)
        AND (s.shard_id, s.scheduled_at, s.action_id, s.guid);

-- name: stale_page
SELECT q.scheduled_at, q.action_id, q.action_guid, q.last_reschedule_at, s.is_live IS NULL
FROM (
    SELECT scheduled_at, action_id, action_guid, last_reschedule_at
    FROM clepsydra.processing_queue
    WHERE shard_id = $1 AND (scheduled_at, action_id, action_guid) > ($2, $3, $4)
    ORDER BY scheduled_at, action_id, action_guid
    LIMIT $5
) AS q
LEFT JOIN LATERAL (
    SELECT true AS is_live
    FROM clepsydra.scheduled_actions
    WHERE meta_action_id_hash = 0 AND meta_action_id = q.action_id AND meta_action_guid = q.action_guid
    LIMIT 1
) AS s ON true
ORDER BY q.scheduled_at, q.action_id, q.action_guid;

-- A hint is worth no sync of the disk.
-- name: notify
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2);

-- The planner may choose freely again, for questions about whole tables.
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

-- name: locks
SELECT
    l.shard_id, l.locked, l.last_lock_guid, l.last_locked_by, l.last_processing_start_at, l.last_heartbeat_at,
    coalesce(i.n, 0), coalesce(p.n, 0), least(i.earliest, p.earliest)
FROM clepsydra.shard_locks AS l
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
    WHERE r.shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM clepsydra.shard_locks)
    GROUP BY s.meta_action_id
)
SELECT
    (SELECT count(*) FROM clepsydra.scheduled_actions),
    (SELECT coalesce(sum(n), 0)::bigint FROM live),
    (SELECT count(*) FROM rows),
    (SELECT count(*) FROM live),
    (SELECT count(*) FROM live WHERE n > 1),
    ARRAY(
        SELECT DISTINCT shard_id FROM rows
        WHERE shard_id NOT BETWEEN 0 AND (SELECT max(shard_id) FROM clepsydra.shard_locks)
        ORDER BY shard_id
    );

-- name: audit_violations
WITH
rows AS (
    SELECT
        true AS is_incoming, shard_id, created_at AS at, action_id, action_guid, scheduled_at,
        NULL::bigint AS rescheduled_at
    FROM clepsydra.incoming_queue
    WHERE shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM clepsydra.shard_locks)
    UNION ALL
    SELECT false, shard_id, scheduled_at, action_id, action_guid, scheduled_at, last_reschedule_at
    FROM clepsydra.processing_queue
    WHERE shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM clepsydra.shard_locks)
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

-- The version is written in the comment of a table that is ours even where the schema is somebody else's.
-- name: installed
SELECT
    current_setting('server_version_num')::integer,
    current_setting('plan_cache_mode'),
    obj_description(to_regclass('clepsydra.shard_locks'), 'pg_class');

-- Whoever installs holds this until the end of the transaction.
-- name: lock_installation
SELECT pg_advisory_xact_lock(1668051059, hashtext($1));

-- name: schema_exists
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1);

-- name: create_schema
CREATE SCHEMA clepsydra;

-- name: install_locks
INSERT INTO clepsydra.shard_locks
SELECT shard_id, false, '', '', 0, 0 FROM generate_series(0, $1::integer - 1) AS shard_id;

-- name: count_locks
SELECT count(*)::integer FROM clepsydra.shard_locks;

-- Where and when an application creates an action in a transaction of its own, and what is there already.
-- name: look_before_creation
SELECT
    obj_description('clepsydra.shard_locks'::regclass, 'pg_class'),
    (SELECT count(*)::integer FROM clepsydra.shard_locks),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    s.meta_action_id, s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM (SELECT) AS here
LEFT JOIN clepsydra.scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = $1;
