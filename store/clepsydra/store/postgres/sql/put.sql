-- Changes by users.
--
-- All statements of this folder name the schema clepsydra. For an installation in another schema, that name is replaced
-- when the files are loaded. Each call of the port is one statement: one snapshot, one transaction, one round trip. It
-- takes its batch as arrays, sorted by action id; numbers and texts arrive as text, see array_parameters.py.
--
-- `put` and `advance` judge a batch by the statement's snapshot. An action that is going to be written is locked while
-- it is judged, in the order of action ids and before its row. If the locked version is not the version in the
-- snapshot, somebody else has changed the action since: it is `lost`, nothing is written for it, and another statement
-- judges it again. A row is not locked: it never changes under its key, so a write finds it as it was seen, or does not
-- find it. docs/decisions/0010 lists the races one by one.
--
-- The planner cannot know the size of tables that grow and shrink by the second, so statements leave it one plan only:
-- lookups by key, see docs/decisions/0011. Reads are LATERAL with LIMIT 1. Locked actions are written by `ctid`, which
-- names the very version that was locked. Everything else is written by a range that starts and ends at one key: unlike
-- an equation, it can be evaluated in one direction only, from the batch to the table.

-- The judgement of a put:
--     done       an earlier try has done it
--     late       the call is older than a call may be retried
--     conflict   the action is not as it was seen
--     new_life   write the action with a new guid, and append the row of its new life
--     same_life  write meta and spec alone
--     lost       the action has changed since the snapshot: judge it again
-- A creation is not looked up unless it is late: the insert finds out whether the id is free. If the id is taken by an
-- action that the snapshot does not show, the creation is lost.
-- Returns what was not done.
-- name: put
WITH
judged AS MATERIALIZED (
    SELECT
        p.*, s.*,
        CASE
            WHEN l.version IS DISTINCT FROM s.version THEN 'lost'
            WHEN p.shard_id IS NULL AND s.current_meta = p.meta AND s.current_spec = p.spec THEN 'done'
            WHEN p.shard_id IS NOT NULL AND s.current_guid = p.guid THEN 'done'
            WHEN p.created_at < c.oldest THEN 'late'
            WHEN p.shard_id IS NULL THEN CASE WHEN s.current_meta = p.seen_meta THEN 'same_life' ELSE 'conflict' END
            WHEN p.seen_guid IS NULL THEN 'new_life'
            WHEN s.current_guid = p.seen_guid
                AND s.current_scheduled_at = p.seen_scheduled_at
                AND s.current_meta = p.seen_meta THEN 'new_life'
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
    SELECT 0, action_id, meta, guid, spec, status, scheduled_at
    FROM judged
    WHERE judgement = 'new_life' AND seen_guid IS NULL
    ORDER BY n
    ON CONFLICT DO NOTHING
    RETURNING meta_action_id
),
-- A creation has no version.
changed AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET meta = j.meta,
        meta_action_guid = j.guid,
        spec = j.spec,
        status = j.status,
        status_scheduled_at = j.scheduled_at
    FROM judged AS j
    WHERE j.judgement = 'new_life' AND s.ctid = j.version
),
written_in_same_life AS (
    UPDATE clepsydra.scheduled_actions AS s SET meta = j.meta, spec = j.spec
    FROM judged AS j
    WHERE j.judgement = 'same_life' AND s.ctid = j.version
),
appended AS (
    INSERT INTO clepsydra.incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
    SELECT shard_id, created_at, action_id, guid, scheduled_at
    FROM judged
    WHERE judgement = 'new_life'
        AND (seen_guid IS NOT NULL OR action_id IN (SELECT meta_action_id FROM created))
)
SELECT n - 1, judgement, current_guid, current_meta, current_spec, current_status, current_scheduled_at
FROM judged
WHERE judgement IN ('late', 'conflict', 'lost')
UNION ALL
-- Creations whose id was taken, except those that an earlier try of this call has done.
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
WHERE j.judgement = 'new_life' AND j.seen_guid IS NULL
    AND j.action_id NOT IN (SELECT meta_action_id FROM created)
    AND s.meta_action_guid IS DISTINCT FROM j.guid;

-- Sent after puts, in a transaction of its own: a wake-up is not worth a sync of the disk.
-- name: notify
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2);

-- What an application needs to know before it creates an action in a transaction of its own.
-- name: look_before_creation
SELECT
    (SELECT max(version) FROM clepsydra.schema_migrations),
    (SELECT count(*)::integer FROM clepsydra.shard_locks),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    s.meta_action_id, s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM (SELECT) AS here
LEFT JOIN clepsydra.scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = $1;
