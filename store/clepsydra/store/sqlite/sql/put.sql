-- Changes by users.
--
-- Creations, migrations and advances, which are nearly all that is written, are inserted into views, whose triggers write
-- them: a batch is one statement, which is executed without Python's global lock and does all or nothing. A row of NULLs
-- stands for no row: see multi_row_insert.py. If the statement is refused, and for puts of other kinds, the batch is loaded
-- into a temporary table and judged there by one statement, one letter for each item, and then written by its judgements.

-- The key of the table refuses a creation if the id is taken.
-- name: put_views
CREATE TEMP VIEW creations AS
SELECT
    NULL AS action_id, NULL AS guid, NULL AS meta, NULL AS spec, NULL AS status, NULL AS scheduled_at,
    NULL AS shard_id, NULL AS created_at;

CREATE TEMP TRIGGER create_action INSTEAD OF INSERT ON creations WHEN NEW.action_id IS NOT NULL
BEGIN
    INSERT INTO scheduled_actions (
        meta_action_id_hash, meta_action_id, meta, meta_action_guid, spec, status, status_scheduled_at
    )
    VALUES (0, NEW.action_id, NEW.meta, NEW.guid, NEW.spec, NEW.status, NEW.scheduled_at);
    INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
    VALUES (NEW.shard_id, NEW.created_at, NEW.action_id, NEW.guid, NEW.scheduled_at);
END;

-- d: done by an earlier try, l: too late, m: write meta and spec alone, w: write a new life, c: conflict
-- name: judge_puts
UPDATE temp.puts AS p
SET judgement = (
    SELECT CASE
        WHEN p.shard_id IS NULL AND s.meta = p.meta AND s.spec = p.spec THEN 'd'
        WHEN p.shard_id IS NOT NULL AND s.meta_action_guid = p.guid THEN 'd'
        WHEN p.created_at < :oldest THEN 'l'
        WHEN p.shard_id IS NULL THEN CASE WHEN s.meta = p.seen_meta THEN 'm' ELSE 'c' END
        WHEN s.meta_action_guid IS p.seen_guid
            AND s.status_scheduled_at IS p.seen_scheduled_at
            AND s.meta IS p.seen_meta THEN 'w'
        ELSE 'c'
    END
    FROM (SELECT 1)
    LEFT JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = p.action_id
);

-- name: put_judgements
SELECT group_concat(judgement, '' ORDER BY n) FROM temp.puts;

-- fragment: replace_life
ON CONFLICT (meta_action_id_hash, meta_action_id) DO UPDATE SET
    meta_action_guid = excluded.meta_action_guid,
    meta = excluded.meta,
    spec = excluded.spec,
    status = excluded.status,
    status_scheduled_at = excluded.status_scheduled_at

-- name: write_lives
INSERT INTO scheduled_actions (
    meta_action_id_hash, meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
)
SELECT 0, action_id, guid, meta, spec, status, scheduled_at FROM temp.puts WHERE judgement = 'w' ORDER BY n
-- include: replace_life
;

-- name: append_to_incoming_queue
INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
SELECT shard_id, created_at, action_id, guid, scheduled_at FROM temp.puts WHERE judgement = 'w';

-- name: write_in_same_life
UPDATE scheduled_actions SET meta = p.meta, spec = p.spec
FROM temp.puts AS p
WHERE p.judgement = 'm' AND meta_action_id_hash = 0 AND meta_action_id = p.action_id;

-- name: current_of_conflicts
SELECT p.n, s.meta_action_id, s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM temp.puts AS p
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = p.action_id
WHERE p.judgement = 'c';

-- For an application that creates an action in a transaction of its own, on a connection without temporary tables.
-- name: write_life
INSERT INTO scheduled_actions (
    meta_action_id_hash, meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
)
VALUES (0, ?, ?, ?, ?, ?, ?)
-- include: replace_life
;

-- name: append_row
INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at) VALUES (?, ?, ?, ?, ?);
