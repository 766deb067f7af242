-- The writes of workers. put.sql explains the views.

-- The guard, in three parts. NEW is the advance: the key of its row, and what was seen of its action.
-- fragment: action_as_seen
meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
    AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at)

-- fragment: incoming_row
shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid

-- fragment: processing_row
shard_id = NEW.shard_id AND scheduled_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid

-- If the last statement of a trigger found nothing, the whole batch is rolled back, and judged item by item instead.
-- fragment: refuse_unless_changed
SELECT RAISE(ABORT, 'not as seen') WHERE changes() = 0

-- What an advance does to the action: only check it, write its status, or delete it.
-- fragment: check_action
SELECT RAISE(ABORT, 'not as seen') WHERE NOT EXISTS (
    SELECT 1 FROM scheduled_actions
    WHERE
        -- include: action_as_seen
);

-- fragment: write_action
UPDATE scheduled_actions SET status = NEW.status, status_scheduled_at = NEW.status_scheduled_at
WHERE
    -- include: action_as_seen
;
-- include: refuse_unless_changed
;

-- fragment: delete_action
DELETE FROM scheduled_actions
WHERE
    -- include: action_as_seen
;
-- include: refuse_unless_changed
;

-- What an advance does to the row: delete it, or move it to its next time.
-- fragment: delete_incoming_row
DELETE FROM incoming_queue
WHERE
    -- include: incoming_row
;
-- include: refuse_unless_changed
;

-- fragment: delete_processing_row
DELETE FROM processing_queue
WHERE
    -- include: processing_row
;
-- include: refuse_unless_changed
;

-- REPLACE is for a damaged installation, in which an action may have two live rows: if one is moved onto the other, the
-- worker has to go on.
-- fragment: move_incoming_row
-- include: delete_incoming_row
INSERT OR REPLACE INTO processing_queue (
    shard_id, scheduled_at, action_id, action_guid,
    added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
)
VALUES (NEW.shard_id, NEW.to_at, NEW.action_id, NEW.guid, NEW.at, NEW.sync_guid, NEW.marked_at);

-- fragment: move_processing_row
UPDATE OR REPLACE processing_queue
SET scheduled_at = NEW.to_at,
    last_reschedule_by_sync_with_guid = NEW.sync_guid,
    last_reschedule_at = NEW.marked_at
WHERE
    -- include: processing_row
;
-- include: refuse_unless_changed
;

-- name: advance_views
CREATE TEMP VIEW advances_from_incoming AS
SELECT
    NULL AS sync_guid, NULL AS marked_at, NULL AS shard_id, NULL AS at, NULL AS action_id, NULL AS guid,
    NULL AS to_at, NULL AS seen_scheduled_at, NULL AS status, NULL AS status_scheduled_at;
CREATE TEMP VIEW advances_in_processing AS SELECT * FROM advances_from_incoming;

CREATE TEMP TRIGGER move_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NULL
BEGIN
    -- include: check_action
    -- include: move_incoming_row
END;

CREATE TEMP TRIGGER write_and_move_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NOT NULL
BEGIN
    -- include: write_action
    -- include: move_incoming_row
END;

CREATE TEMP TRIGGER remove_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NULL AND NEW.action_id IS NOT NULL
BEGIN
    -- include: delete_action
    -- include: delete_incoming_row
END;

CREATE TEMP TRIGGER move_in_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NULL
BEGIN
    -- include: check_action
    -- include: move_processing_row
END;

CREATE TEMP TRIGGER write_and_move_in_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NOT NULL
BEGIN
    -- include: write_action
    -- include: move_processing_row
END;

CREATE TEMP TRIGGER remove_from_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NULL AND NEW.action_id IS NOT NULL
BEGIN
    -- include: delete_action
    -- include: delete_processing_row
END;

-- A migration moves a row if it still exists, whatever its guid.
CREATE TEMP VIEW migrations AS
SELECT NULL AS sync_guid, NULL AS moved_at, NULL AS shard_id, NULL AS at, NULL AS action_id, NULL AS guid;

CREATE TEMP TRIGGER migrate_row INSTEAD OF INSERT ON migrations WHEN NEW.action_id IS NOT NULL
BEGIN
    INSERT OR REPLACE INTO processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at,
        moved_from_incoming_to_processing_queue_by_sync_with_guid,
        moved_from_incoming_to_processing_queue_at
    )
    SELECT shard_id, scheduled_at, action_id, action_guid, created_at, NEW.sync_guid, NEW.moved_at
    FROM incoming_queue
    WHERE
        -- include: incoming_row
    ;
    DELETE FROM incoming_queue
    WHERE
        -- include: incoming_row
    ;
END;

-- The advances that are refused, and why. d: done by an earlier try, g: gone, s: stale.
-- fragment: judge_advances
SELECT a.n, CASE
    WHEN q.shard_id IS NULL THEN CASE WHEN t.shard_id IS NULL THEN 'g' ELSE 'd' END
    WHEN s.meta_action_guid IS NOT a.guid THEN 's'
    ELSE 'g'
END
FROM temp.advances AS a
LEFT JOIN scheduled_actions AS s
    ON s.meta_action_id_hash = 0 AND s.meta_action_id = a.action_id
LEFT JOIN processing_queue AS t
    ON t.shard_id = a.shard_id AND t.scheduled_at = a.to_at AND t.action_id = a.action_id AND t.action_guid = a.guid
    AND t.last_reschedule_by_sync_with_guid = :sync_guid AND t.last_reschedule_at = :at

-- fragment: where_refused
WHERE q.shard_id IS NULL
    OR s.meta_action_guid IS NOT a.guid
    OR s.status_scheduled_at <> a.seen_scheduled_at

-- name: judge_advances_from_incoming
-- include: judge_advances
LEFT JOIN incoming_queue AS q
    ON q.shard_id = a.shard_id AND q.created_at = a.at AND q.action_id = a.action_id AND q.action_guid = a.guid
-- include: where_refused
;

-- name: judge_advances_in_processing
-- include: judge_advances
LEFT JOIN processing_queue AS q
    ON q.shard_id = a.shard_id AND q.scheduled_at = a.at AND q.action_id = a.action_id AND q.action_guid = a.guid
-- include: where_refused
;

-- name: drop_from_incoming
DELETE FROM incoming_queue
WHERE (shard_id, created_at, action_id, action_guid) IN (SELECT shard_id, at, action_id, guid FROM temp.row_keys);

-- name: drop_from_processing
DELETE FROM processing_queue
WHERE (shard_id, scheduled_at, action_id, action_guid) IN (SELECT shard_id, at, action_id, guid FROM temp.row_keys);

-- Begins of adjacent rows: see range_begin.py.
-- fragment: in_range
shard_id = ?1 AND (created_at, action_id, action_guid) >= (?2, ?3, ?4)
    AND (created_at, action_id, action_guid) <= (?5, ?6, ?7)

-- name: live_guids_in_range
SELECT group_concat(action_guid, '') FROM (
    SELECT action_guid
    FROM incoming_queue
    CROSS JOIN scheduled_actions
    WHERE
        -- include: in_range
        AND meta_action_id_hash = 0 AND meta_action_id = action_id AND meta_action_guid = action_guid
    ORDER BY created_at, action_id, action_guid
    LIMIT ?8
);

-- name: begin_range
INSERT OR REPLACE INTO processing_queue (
    shard_id, scheduled_at, action_id, action_guid,
    added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
)
SELECT shard_id, ?8, action_id, action_guid, created_at, ?9, ?10
FROM incoming_queue
WHERE
    -- include: in_range
;

-- name: drop_range
DELETE FROM incoming_queue
WHERE
    -- include: in_range
;
