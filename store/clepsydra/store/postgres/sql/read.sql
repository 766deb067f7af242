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

-- name: versions
SELECT meta_action_id, meta_action_guid, status_scheduled_at
FROM clepsydra.scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = ANY ($1::text[]);

-- fragment: live_row
p.shard_id, p.scheduled_at, p.action_id, p.action_guid, p.last_reschedule_at,
p.added_to_incoming_queue_at,
p.moved_from_incoming_to_processing_queue_by_sync_with_guid,
p.moved_from_incoming_to_processing_queue_at,
p.last_reschedule_by_sync_with_guid

-- A range of each shard.
-- name: rows_between
SELECT
    -- include: live_row
FROM clepsydra.shard_locks AS l
CROSS JOIN LATERAL (
    SELECT *
    FROM clepsydra.processing_queue AS q
    WHERE q.shard_id = l.shard_id AND q.scheduled_at > $2 AND q.scheduled_at <= $3
        AND q.last_reschedule_at IS NOT NULL AND q.action_id = ANY ($1::text[])
) AS p;

-- name: processing_row
SELECT
    -- include: live_row
FROM clepsydra.scheduled_actions AS s
CROSS JOIN clepsydra.shard_locks AS l
CROSS JOIN LATERAL (
    SELECT *
    FROM clepsydra.processing_queue AS q
    WHERE q.shard_id = l.shard_id
        AND q.scheduled_at >= s.status_scheduled_at AND q.scheduled_at <= greatest(s.status_scheduled_at, $2)
        AND q.action_id = s.meta_action_id AND q.action_guid = s.meta_action_guid
) AS p
WHERE s.meta_action_id_hash = 0 AND s.meta_action_id = $1;

-- name: incoming_row
SELECT q.shard_id, q.created_at, q.action_id, q.action_guid, q.scheduled_at
FROM clepsydra.scheduled_actions AS s
JOIN clepsydra.incoming_queue AS q ON q.action_id = s.meta_action_id AND q.action_guid = s.meta_action_guid
JOIN clepsydra.shard_locks AS l ON l.shard_id = q.shard_id
WHERE s.meta_action_id_hash = 0 AND s.meta_action_id = $1;

-- name: lock_rows
SELECT shard_id, locked, last_lock_guid, last_locked_by, last_processing_start_at, last_heartbeat_at
FROM clepsydra.shard_locks
ORDER BY shard_id;
