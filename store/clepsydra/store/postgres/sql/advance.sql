-- The writes of workers. put.sql explains how statements are written.
--
-- `q` is a row of the queue that is written, and `b` the item of the batch that names its key.

-- The row of incoming_queue with the key of the item.
-- fragment: incoming_row
(q.shard_id, q.created_at, q.action_id, q.action_guid)
    BETWEEN (b.shard_id, b.created_at, b.action_id, b.guid)
    AND (b.shard_id, b.created_at, b.action_id, b.guid)

-- The row of processing_queue with the key of the item.
-- fragment: processing_row
(q.shard_id, q.scheduled_at, q.action_id, q.action_guid)
    BETWEEN (b.shard_id, b.scheduled_at, b.action_id, b.guid)
    AND (b.shard_id, b.scheduled_at, b.action_id, b.guid)

-- Found if the guid of the item is the guid of its action.
-- fragment: live_action
SELECT true
FROM clepsydra.scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = b.action_id AND meta_action_guid = b.guid
LIMIT 1

-- Keys of rows: an item has `created_at` in incoming_queue, `scheduled_at` in processing_queue, and NULL in the other.
-- fragment: keys
SELECT *
FROM unnest(
    $1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[]
) AS k (shard_id, created_at, scheduled_at, action_id, guid)

-- name: migrate
WITH
batch AS MATERIALIZED (
    -- include: keys
),
moved AS (
    DELETE FROM clepsydra.incoming_queue AS q USING batch AS b
    WHERE
        -- include: incoming_row
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
batch AS MATERIALIZED (
    -- include: keys
),
dropped_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q USING batch AS b
    WHERE b.created_at IS NOT NULL AND
        -- include: incoming_row
),
dropped_processing AS (
    DELETE FROM clepsydra.processing_queue AS q USING batch AS b
    WHERE b.scheduled_at IS NOT NULL AND
        -- include: processing_row
)
SELECT;

-- Nearly all batches of advances are of one kind, and all of their rows are as they were seen. The next three
-- statements write such a batch without judging it, and return how many rows they moved. If that is not the whole
-- batch, `advance` judges it under the same mark. docs/decisions/0014 says why.
-- name: begin_from_incoming
WITH
left_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q
    USING unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[]
    ) AS b (shard_id, created_at, action_id, guid, to_at)
    CROSS JOIN LATERAL (
        -- include: live_action
    ) AS s
    WHERE
        -- include: incoming_row
    RETURNING b.*
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
    SET scheduled_at = b.to_at, last_reschedule_by_sync_with_guid = $6, last_reschedule_at = $7
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[]
    ) AS b (shard_id, scheduled_at, action_id, guid, to_at)
    CROSS JOIN LATERAL (
        -- include: live_action
    ) AS s
    WHERE
        -- include: processing_row
    RETURNING true
)
SELECT count(*) FROM moved;

-- This writes an action, and so locks it, before it knows whether the row can be moved. So it does all or nothing: if
-- not all rows were moved, it casts the last parameter to integer, which is a text that says why, and this fails.
-- name: finish_in_processing
WITH
written AS (
    UPDATE clepsydra.scheduled_actions AS s
    SET status = f.status, status_scheduled_at = f.status_scheduled_at
    FROM unnest(
        $1::text::integer[], $2::text::bigint[], $3::text::text[], $4::text::text[], $5::text::bigint[],
        $6::text::bigint[], $7::bytea[], $8::text::bigint[]
    ) AS f (shard_id, scheduled_at, action_id, guid, to_at, seen_scheduled_at, status, status_scheduled_at)
    WHERE (s.meta_action_id_hash, s.meta_action_id) BETWEEN (0::smallint, f.action_id) AND (0::smallint, f.action_id)
        AND s.meta_action_guid = f.guid AND s.status_scheduled_at = f.seen_scheduled_at
    RETURNING f.shard_id, f.scheduled_at, f.action_id, f.guid, f.to_at
),
moved AS (
    UPDATE clepsydra.processing_queue AS q
    SET scheduled_at = b.to_at, last_reschedule_by_sync_with_guid = $9, last_reschedule_at = $10
    FROM written AS b
    WHERE
        -- include: processing_row
    RETURNING true
)
SELECT CASE WHEN count(*) = $11::integer THEN count(*) ELSE $12::text::integer END FROM moved;

-- The judgement of an advance:
--     lost    the action has changed since the snapshot: judge it again
--     stale   the guid is old: delete the row
--     gone    the action is not as it was seen: do nothing
--     remove  delete the row and the action
--     move    move the row, and write the action if there is a status
-- An ordinary begin and an extension do not lock the action: the snapshot shows all that they need. An action is
-- written only if its row was. A row that is in the snapshot but was not written was just written by somebody else: it
-- is lost. A row that is not in the snapshot is gone; but if the row at the target carries the mark of this call, an
-- earlier try has moved it there: it is done.
-- Returns what was not done.
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
    SET scheduled_at = b.to_at, last_reschedule_by_sync_with_guid = $10, last_reschedule_at = $11
    FROM judged AS b
    WHERE b.judgement = 'move' AND b.scheduled_at IS NOT NULL AND
        -- include: processing_row
    RETURNING b.n, b.judgement, b.version, b.status, b.status_scheduled_at
),
left_processing AS (
    DELETE FROM clepsydra.processing_queue AS q USING judged AS b
    WHERE b.judgement IN ('remove', 'stale') AND b.scheduled_at IS NOT NULL AND
        -- include: processing_row
    RETURNING b.n, b.judgement, b.version, b.status, b.status_scheduled_at
),
left_incoming AS (
    DELETE FROM clepsydra.incoming_queue AS q USING judged AS b
    WHERE b.judgement IN ('move', 'remove', 'stale') AND b.created_at IS NOT NULL AND
        -- include: incoming_row
    RETURNING
        b.n, b.judgement, b.version, b.status, b.status_scheduled_at,
        b.shard_id, b.created_at, b.action_id, b.guid, b.to_at
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
-- Each `n` is there once. They are grouped so that the planner expects few: it takes the range of a key for a ninth of
-- the table, and would allocate megabytes for a hash table at every call, or not hash at all if that is too much.
touched_items AS MATERIALIZED (
    SELECT n FROM touched GROUP BY n
),
not_done AS (
    SELECT *, n IN (SELECT n FROM touched_items) AS is_touched
    FROM judged
    WHERE judgement IN ('lost', 'stale') OR n NOT IN (SELECT n FROM touched_items)
)
SELECT
    f.n - 1,
    CASE
        WHEN f.judgement = 'lost' OR f.is_touched THEN f.judgement
        WHEN i.is_there OR p.is_there THEN CASE f.judgement WHEN 'gone' THEN 'gone' ELSE 'lost' END
        ELSE 'gone'
    END
FROM not_done AS f
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

-- A damaged installation may have two live rows of one action. If one of them is to move onto the other, the other is
-- deleted first.
-- name: make_room
WITH
targets AS MATERIALIZED (
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
DELETE FROM clepsydra.processing_queue AS q USING targets AS b
WHERE
    -- include: processing_row
;
