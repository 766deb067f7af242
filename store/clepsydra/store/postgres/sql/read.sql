-- Reads of actions and of rows, each from one snapshot.

-- name: clock
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- Executed when a session opens: the driver asks the server for the types of these arrays once, before any call uses
-- them.
-- name: load_array_types
SELECT $1::bytea[], $2::integer[];

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

-- The action that a row `q` of a queue belongs to; none if the row's guid is old.
-- fragment: action_of_row
SELECT meta, spec, status, status_scheduled_at
FROM clepsydra.scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = q.action_id AND meta_action_guid = q.action_guid
LIMIT 1

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
        -- include: action_of_row
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
            AND (scheduled_at, action_id, action_guid) > ($4, $7, $8)
        ORDER BY scheduled_at, action_id, action_guid
        LIMIT $6
    ) AS q
    LEFT JOIN LATERAL (
        -- include: action_of_row
    ) AS s ON true
    ORDER BY q.scheduled_at, q.action_id, q.action_guid
);

-- name: soon
SELECT created_at, action_id, action_guid, scheduled_at
FROM clepsydra.incoming_queue
WHERE shard_id = $1 AND created_at >= $2 AND scheduled_at <= $3
ORDER BY created_at, action_id, action_guid
LIMIT $4;

-- name: stale_page
SELECT q.scheduled_at, q.action_id, q.action_guid, q.last_reschedule_at, s.meta IS NULL
FROM (
    SELECT scheduled_at, action_id, action_guid, last_reschedule_at
    FROM clepsydra.processing_queue
    WHERE shard_id = $1 AND (scheduled_at, action_id, action_guid) > ($2, $3, $4)
    ORDER BY scheduled_at, action_id, action_guid
    LIMIT $5
) AS q
LEFT JOIN LATERAL (
    -- include: action_of_row
) AS s ON true
ORDER BY q.scheduled_at, q.action_id, q.action_guid;
