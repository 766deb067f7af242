-- What schedulers and workers read.

-- name: get
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM temp.action_ids AS i
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = i.action_id;

-- name: get_one
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = ?;

-- name: list_actions
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id > :after
ORDER BY meta_action_id
LIMIT :limit;

-- A page of a queue as one row: see page_reader.py. `q` is the page: each row's place in its queue (`at`), action_id,
-- action_guid, scheduled_at and rescheduled_at. `s` is the action if the row is live.
-- fragment: packed
SELECT
    json_group_array(json_array(
        at, action_id, action_guid, scheduled_at, rescheduled_at,
        status_scheduled_at, length(meta), length(spec), length(status)
    )),
    CAST(
        group_concat(meta || spec || status, '')
        FILTER (WHERE length(meta) + length(spec) + length(status) <= :packed_bytes)
    AS BLOB)

-- fragment: with_live_action
LEFT JOIN scheduled_actions AS s
    ON s.meta_action_id_hash = 0 AND s.meta_action_id = q.action_id AND s.meta_action_guid = q.action_guid

-- name: incoming
-- include: packed
FROM (
    SELECT q.*, s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT created_at AS at, action_id, action_guid, scheduled_at, NULL AS rescheduled_at
        FROM incoming_queue
        WHERE shard_id = :shard_id AND created_at >= :from_at
        ORDER BY created_at, action_id, action_guid
        LIMIT :limit
    ) AS q
    -- include: with_live_action
    ORDER BY q.at, q.action_id, q.action_guid
);

-- name: due
-- include: packed
FROM (
    SELECT q.*, s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT scheduled_at AS at, action_id, action_guid, scheduled_at, last_reschedule_at AS rescheduled_at
        FROM processing_queue
        WHERE shard_id = :shard_id AND scheduled_at <= :until
            AND (scheduled_at, action_id, action_guid) > (:from_at, :from_id, :from_guid)
        ORDER BY scheduled_at, action_id, action_guid
        LIMIT :limit
    ) AS q
    -- include: with_live_action
    ORDER BY q.at, q.action_id, q.action_guid
);

-- name: soon
SELECT created_at, action_id, action_guid, scheduled_at FROM incoming_queue
WHERE shard_id = :shard_id AND created_at >= :from_at AND scheduled_at <= :until
ORDER BY created_at, action_id, action_guid
LIMIT :limit;

-- name: stale_page
SELECT q.scheduled_at, q.action_id, q.action_guid, q.last_reschedule_at, s.meta_action_id IS NULL
FROM (
    SELECT scheduled_at, action_id, action_guid, last_reschedule_at FROM processing_queue
    WHERE shard_id = :shard_id AND (scheduled_at, action_id, action_guid) > (:at, :action_id, :guid)
    ORDER BY scheduled_at, action_id, action_guid
    LIMIT :limit
) AS q
-- include: with_live_action
ORDER BY q.scheduled_at, q.action_id, q.action_guid;

-- name: shards_with_incoming_rows
SELECT shard_id FROM shard_locks AS l WHERE EXISTS (SELECT 1 FROM incoming_queue AS q WHERE q.shard_id = l.shard_id);
