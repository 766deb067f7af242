-- Every statement takes its whole batch at once. Creations, migrations and advances, nearly all that is written, are inserted
-- into views, whose triggers carry them out: so a batch is one statement, runs to its end without Python's global lock, and
-- does all or nothing. Where one of them is hindered, the batch is loaded into a temporary table, judged there by one
-- statement, and then written according to the judgement, which is one letter per row. So are puts of other kinds.

-- name: temporary_tables
CREATE TEMP TABLE puts (
    n INTEGER PRIMARY KEY,
    action_id TEXT,
    guid TEXT,
    meta BLOB,
    spec BLOB,
    status BLOB,
    scheduled_at INTEGER,
    shard_id INTEGER,
    created_at INTEGER,
    seen_guid TEXT,
    seen_scheduled_at INTEGER,
    seen_meta BLOB,
    judgement TEXT
);
CREATE TEMP TABLE advances (
    n INTEGER PRIMARY KEY,
    shard_id INTEGER,
    at INTEGER,
    action_id TEXT,
    guid TEXT,
    to_at INTEGER,
    seen_scheduled_at INTEGER
);
CREATE TEMP TABLE row_keys (
    shard_id INTEGER,
    at INTEGER,
    action_id TEXT,
    guid TEXT
);
CREATE TEMP TABLE action_ids (
    n INTEGER PRIMARY KEY,
    action_id TEXT
);

-- What is inserted into these views is carried out by their triggers: a batch is one statement, and does all or nothing. A
-- row of NULLs stands for no row: see batches.py. The REPLACE of queue rows is for a damaged installation, which may have two
-- live rows of an action: a move of one onto the other must not stop a worker.
-- name: writing
CREATE TEMP VIEW creations AS
SELECT
    NULL AS action_id, NULL AS guid, NULL AS meta, NULL AS spec, NULL AS status, NULL AS scheduled_at,
    NULL AS shard_id, NULL AS created_at;

-- One that is there already is refused by the key of the table.
CREATE TEMP TRIGGER create_action INSTEAD OF INSERT ON creations WHEN NEW.action_id IS NOT NULL
BEGIN
    INSERT INTO scheduled_actions (
        meta_action_id_hash, meta_action_id, meta, meta_action_guid, spec, status, status_scheduled_at
    )
    VALUES (0, NEW.action_id, NEW.meta, NEW.guid, NEW.spec, NEW.status, NEW.scheduled_at);
    INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
    VALUES (NEW.shard_id, NEW.created_at, NEW.action_id, NEW.guid, NEW.scheduled_at);
END;

-- Only what still exists is moved.
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
    WHERE shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    DELETE FROM incoming_queue
    WHERE shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
END;

-- The guard: whatever finds the action or the row not as it was seen takes back the whole statement.
CREATE TEMP VIEW advances_from_incoming AS
SELECT
    NULL AS sync_guid, NULL AS marked_at, NULL AS shard_id, NULL AS at, NULL AS action_id, NULL AS guid,
    NULL AS to_at, NULL AS seen_scheduled_at, NULL AS status, NULL AS status_scheduled_at;
CREATE TEMP VIEW advances_in_processing AS SELECT * FROM advances_from_incoming;

CREATE TEMP TRIGGER move_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NULL
BEGIN
    SELECT RAISE(ABORT, 'hindered') WHERE NOT EXISTS (
        SELECT 1 FROM scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
            AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at)
    );
    DELETE FROM incoming_queue
    WHERE shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    INSERT OR REPLACE INTO processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
    )
    VALUES (NEW.shard_id, NEW.to_at, NEW.action_id, NEW.guid, NEW.at, NEW.sync_guid, NEW.marked_at);
END;

CREATE TEMP TRIGGER move_and_write_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NOT NULL
BEGIN
    UPDATE scheduled_actions SET status = NEW.status, status_scheduled_at = NEW.status_scheduled_at
    WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
        AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at);
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    DELETE FROM incoming_queue
    WHERE shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    INSERT OR REPLACE INTO processing_queue (
        shard_id, scheduled_at, action_id, action_guid,
        added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
    )
    VALUES (NEW.shard_id, NEW.to_at, NEW.action_id, NEW.guid, NEW.at, NEW.sync_guid, NEW.marked_at);
END;

CREATE TEMP TRIGGER remove_from_incoming INSTEAD OF INSERT ON advances_from_incoming
WHEN NEW.to_at IS NULL AND NEW.action_id IS NOT NULL
BEGIN
    DELETE FROM scheduled_actions
    WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
        AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at);
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    DELETE FROM incoming_queue
    WHERE shard_id = NEW.shard_id AND created_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
END;

CREATE TEMP TRIGGER move_in_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NULL
BEGIN
    SELECT RAISE(ABORT, 'hindered') WHERE NOT EXISTS (
        SELECT 1 FROM scheduled_actions
        WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
            AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at)
    );
    UPDATE OR REPLACE processing_queue
    SET scheduled_at = NEW.to_at,
        last_reschedule_by_sync_with_guid = NEW.sync_guid,
        last_reschedule_at = NEW.marked_at
    WHERE shard_id = NEW.shard_id AND scheduled_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
END;

CREATE TEMP TRIGGER move_and_write_in_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NOT NULL AND NEW.status IS NOT NULL
BEGIN
    UPDATE scheduled_actions SET status = NEW.status, status_scheduled_at = NEW.status_scheduled_at
    WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
        AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at);
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    UPDATE OR REPLACE processing_queue
    SET scheduled_at = NEW.to_at,
        last_reschedule_by_sync_with_guid = NEW.sync_guid,
        last_reschedule_at = NEW.marked_at
    WHERE shard_id = NEW.shard_id AND scheduled_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
END;

CREATE TEMP TRIGGER remove_from_processing INSTEAD OF INSERT ON advances_in_processing
WHEN NEW.to_at IS NULL AND NEW.action_id IS NOT NULL
BEGIN
    DELETE FROM scheduled_actions
    WHERE meta_action_id_hash = 0 AND meta_action_id = NEW.action_id AND meta_action_guid = NEW.guid
        AND (NEW.seen_scheduled_at IS NULL OR status_scheduled_at = NEW.seen_scheduled_at);
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
    DELETE FROM processing_queue
    WHERE shard_id = NEW.shard_id AND scheduled_at = NEW.at AND action_id = NEW.action_id AND action_guid = NEW.guid;
    SELECT RAISE(ABORT, 'hindered') WHERE changes() = 0;
END;

-- name: clear_puts
DELETE FROM temp.puts;

-- name: clear_advances
DELETE FROM temp.advances;

-- name: clear_row_keys
DELETE FROM temp.row_keys;

-- name: clear_action_ids
DELETE FROM temp.action_ids;

-- d: done by an earlier try, l: too late, m: write the meta alone, w: write a new life, c: conflict
-- name: judge_puts
UPDATE temp.puts AS p
SET judgement = (
    SELECT CASE
        WHEN p.shard_id IS NULL AND s.meta = p.meta THEN 'd'
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

-- name: write_lives
INSERT INTO scheduled_actions (
    meta_action_id_hash, meta_action_id, meta, meta_action_guid, spec, status, status_scheduled_at
)
SELECT 0, action_id, meta, guid, spec, status, scheduled_at FROM temp.puts WHERE judgement = 'w' ORDER BY n
ON CONFLICT (meta_action_id_hash, meta_action_id) DO UPDATE SET
    meta = excluded.meta,
    meta_action_guid = excluded.meta_action_guid,
    spec = excluded.spec,
    status = excluded.status,
    status_scheduled_at = excluded.status_scheduled_at;

-- name: append_to_incoming_queue
INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at)
SELECT shard_id, created_at, action_id, guid, scheduled_at FROM temp.puts WHERE judgement = 'w';

-- name: write_metas
UPDATE scheduled_actions SET meta = p.meta
FROM temp.puts AS p
WHERE p.judgement = 'm' AND meta_action_id_hash = 0 AND meta_action_id = p.action_id;

-- name: put_judgements
SELECT group_concat(judgement, '' ORDER BY n) FROM temp.puts;

-- name: current_of_conflicts
SELECT p.n, s.meta_action_id, s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM temp.puts AS p
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = p.action_id
WHERE p.judgement = 'c';

-- name: get
SELECT g.n, s.meta_action_id, s.meta_action_guid, s.meta, s.spec, s.status, s.status_scheduled_at
FROM temp.action_ids AS g
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = g.action_id;

-- name: get_one
SELECT 0, meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id = ?;

-- name: versions
SELECT g.n, s.meta_action_guid, s.status_scheduled_at
FROM temp.action_ids AS g
JOIN scheduled_actions AS s ON s.meta_action_id_hash = 0 AND s.meta_action_id = g.action_id;

-- fragment: live_row
p.shard_id, p.scheduled_at, p.action_id, p.action_guid, p.last_reschedule_at,
p.added_to_incoming_queue_at,
p.moved_from_incoming_to_processing_queue_by_sync_with_guid,
p.moved_from_incoming_to_processing_queue_at,
p.last_reschedule_by_sync_with_guid

-- A cross join keeps this order in SQLite: a range of each shard.
-- name: rows_between
SELECT
    -- include: live_row
FROM shard_locks AS l
CROSS JOIN processing_queue AS p
    ON p.shard_id = l.shard_id AND p.scheduled_at > :after AND p.scheduled_at <= :until
WHERE p.last_reschedule_at IS NOT NULL AND p.action_id IN (SELECT action_id FROM temp.action_ids);

-- name: processing_row
SELECT
    -- include: live_row
FROM shard_locks AS l
CROSS JOIN processing_queue AS p
    ON p.shard_id = l.shard_id AND p.scheduled_at >= :from AND p.scheduled_at <= :until
WHERE p.action_id = :action_id AND p.action_guid = :guid;

-- name: incoming_row
SELECT q.shard_id, q.created_at, q.scheduled_at
FROM shard_locks AS l
CROSS JOIN incoming_queue AS q ON q.shard_id = l.shard_id
WHERE q.action_id = :action_id AND q.action_guid = :guid;

-- name: lock_rows
SELECT shard_id, locked, last_lock_guid, last_locked_by, last_processing_start_at, last_heartbeat_at
FROM shard_locks
ORDER BY shard_id;

-- name: list_actions
SELECT meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
FROM scheduled_actions
WHERE meta_action_id_hash = 0 AND meta_action_id > :after
ORDER BY meta_action_id
LIMIT :limit;

-- name: free_lock_exists
SELECT EXISTS (
    SELECT 1 FROM shard_locks WHERE locked = 0 OR last_heartbeat_at < :stale_before OR last_lock_guid = :guid
);

-- name: lock_with_guid
SELECT shard_id FROM shard_locks WHERE locked = 1 AND last_lock_guid = :guid;

-- name: acquire
UPDATE shard_locks
SET locked = 1,
    last_lock_guid = :guid,
    last_locked_by = :worker,
    last_processing_start_at = :now,
    last_heartbeat_at = :now
WHERE shard_id = (
    SELECT shard_id FROM shard_locks
    WHERE locked = 0 OR last_heartbeat_at < :stale_before
    ORDER BY last_processing_start_at, shard_id
    LIMIT 1
)
RETURNING shard_id;

-- name: heartbeat
UPDATE shard_locks SET last_heartbeat_at = max(last_heartbeat_at, :now)
WHERE locked = 1
    AND (shard_id, last_lock_guid) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:locks))
RETURNING shard_id;

-- Changes nothing, but is refused where nothing may be changed.
-- name: check_writable
UPDATE shard_locks SET locked = locked WHERE false;

-- name: waiting_shards
SELECT count(*) FROM shard_locks WHERE locked = 0 OR last_heartbeat_at < :stale_before;

-- name: release
UPDATE shard_locks SET locked = 0, last_heartbeat_at = max(last_heartbeat_at, :now)
WHERE locked = 1
    AND (shard_id, last_lock_guid) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:locks));

-- A page as one row: see packing.py. The heads of its rows are an array, and the bodies follow one another.
-- name: incoming
SELECT
    json_group_array(json_array(
        created_at, action_id, action_guid, scheduled_at, NULL,
        status_scheduled_at, length(meta), length(spec), length(status)
    )),
    CAST(
        group_concat(meta || spec || status, '')
        FILTER (WHERE length(meta) + length(spec) + length(status) <= :packed_bytes)
    AS BLOB)
FROM (
    SELECT
        q.created_at, q.action_id, q.action_guid, q.scheduled_at,
        s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT created_at, action_id, action_guid, scheduled_at FROM incoming_queue
        WHERE shard_id = :shard_id AND created_at >= :from_at
        ORDER BY created_at, action_id, action_guid
        LIMIT :limit
    ) AS q
    LEFT JOIN scheduled_actions AS s
        ON s.meta_action_id_hash = 0 AND s.meta_action_id = q.action_id AND s.meta_action_guid = q.action_guid
    ORDER BY q.created_at, q.action_id, q.action_guid
);

-- name: shards_with_arrivals
SELECT shard_id FROM shard_locks AS l WHERE EXISTS (SELECT 1 FROM incoming_queue AS q WHERE q.shard_id = l.shard_id);

-- name: due
SELECT
    json_group_array(json_array(
        scheduled_at, action_id, action_guid, scheduled_at, last_reschedule_at,
        status_scheduled_at, length(meta), length(spec), length(status)
    )),
    CAST(
        group_concat(meta || spec || status, '')
        FILTER (WHERE length(meta) + length(spec) + length(status) <= :packed_bytes)
    AS BLOB)
FROM (
    SELECT
        q.scheduled_at, q.action_id, q.action_guid, q.last_reschedule_at,
        s.meta, s.spec, s.status, s.status_scheduled_at
    FROM (
        SELECT scheduled_at, action_id, action_guid, last_reschedule_at FROM processing_queue
        WHERE shard_id = :shard_id AND scheduled_at <= :until
            AND (scheduled_at, action_id, action_guid) > (:from_at, :from_id, :from_guid)
        ORDER BY scheduled_at, action_id, action_guid
        LIMIT :limit
    ) AS q
    LEFT JOIN scheduled_actions AS s
        ON s.meta_action_id_hash = 0 AND s.meta_action_id = q.action_id AND s.meta_action_guid = q.action_guid
    ORDER BY q.scheduled_at, q.action_id, q.action_guid
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
LEFT JOIN scheduled_actions AS s
    ON s.meta_action_id_hash = 0 AND s.meta_action_id = q.action_id AND s.meta_action_guid = q.action_guid
ORDER BY q.scheduled_at, q.action_id, q.action_guid;

-- name: drop_from_incoming
DELETE FROM incoming_queue
WHERE (shard_id, created_at, action_id, action_guid) IN (SELECT shard_id, at, action_id, guid FROM temp.row_keys);

-- name: drop_from_processing
DELETE FROM processing_queue
WHERE (shard_id, scheduled_at, action_id, action_guid) IN (SELECT shard_id, at, action_id, guid FROM temp.row_keys);

-- A begin of neighbours: see neighbours.py.
-- name: live_guids_between
SELECT group_concat(action_guid, '') FROM (
    SELECT q.action_guid
    FROM incoming_queue AS q
    CROSS JOIN scheduled_actions AS s
    WHERE q.shard_id = ?1 AND (q.created_at, q.action_id, q.action_guid) >= (?2, ?3, ?4)
        AND (q.created_at, q.action_id, q.action_guid) <= (?5, ?6, ?7)
        AND s.meta_action_id_hash = 0 AND s.meta_action_id = q.action_id AND s.meta_action_guid = q.action_guid
    ORDER BY q.created_at, q.action_id, q.action_guid
    LIMIT ?8
);

-- name: begin_between
INSERT OR REPLACE INTO processing_queue (
    shard_id, scheduled_at, action_id, action_guid,
    added_to_incoming_queue_at, last_reschedule_by_sync_with_guid, last_reschedule_at
)
SELECT shard_id, ?8, action_id, action_guid, created_at, ?9, ?10
FROM incoming_queue
WHERE shard_id = ?1 AND (created_at, action_id, action_guid) >= (?2, ?3, ?4)
    AND (created_at, action_id, action_guid) <= (?5, ?6, ?7);

-- name: drop_between
DELETE FROM incoming_queue
WHERE shard_id = ?1 AND (created_at, action_id, action_guid) >= (?2, ?3, ?4)
    AND (created_at, action_id, action_guid) <= (?5, ?6, ?7);

-- What hinders advances, and nothing of those that are not. d: done by an earlier try, g: gone, s: stale.
-- name: judge_advances_from_incoming
SELECT a.n, CASE
    WHEN q.shard_id IS NULL THEN CASE WHEN t.shard_id IS NULL THEN 'g' ELSE 'd' END
    WHEN s.meta_action_guid IS NOT a.guid THEN 's'
    ELSE 'g'
END
FROM temp.advances AS a
LEFT JOIN incoming_queue AS q
    ON q.shard_id = a.shard_id AND q.created_at = a.at AND q.action_id = a.action_id AND q.action_guid = a.guid
LEFT JOIN scheduled_actions AS s
    ON s.meta_action_id_hash = 0 AND s.meta_action_id = a.action_id
LEFT JOIN processing_queue AS t
    ON t.shard_id = a.shard_id AND t.scheduled_at = a.to_at AND t.action_id = a.action_id AND t.action_guid = a.guid
    AND t.last_reschedule_by_sync_with_guid = :sync_guid AND t.last_reschedule_at = :at
WHERE q.shard_id IS NULL
    OR s.meta_action_guid IS NOT a.guid
    OR s.status_scheduled_at <> a.seen_scheduled_at;

-- name: judge_advances_in_processing
SELECT a.n, CASE
    WHEN q.shard_id IS NULL THEN CASE WHEN t.shard_id IS NULL THEN 'g' ELSE 'd' END
    WHEN s.meta_action_guid IS NOT a.guid THEN 's'
    ELSE 'g'
END
FROM temp.advances AS a
LEFT JOIN processing_queue AS q
    ON q.shard_id = a.shard_id AND q.scheduled_at = a.at AND q.action_id = a.action_id AND q.action_guid = a.guid
LEFT JOIN scheduled_actions AS s
    ON s.meta_action_id_hash = 0 AND s.meta_action_id = a.action_id
LEFT JOIN processing_queue AS t
    ON t.shard_id = a.shard_id AND t.scheduled_at = a.to_at AND t.action_id = a.action_id AND t.action_guid = a.guid
    AND t.last_reschedule_by_sync_with_guid = :sync_guid AND t.last_reschedule_at = :at
WHERE q.shard_id IS NULL
    OR s.meta_action_guid IS NOT a.guid
    OR s.status_scheduled_at <> a.seen_scheduled_at;

-- name: locks
SELECT
    l.shard_id, l.locked, l.last_lock_guid, l.last_locked_by, l.last_processing_start_at, l.last_heartbeat_at,
    coalesce(i.n, 0), coalesce(p.n, 0), i.earliest, p.earliest
FROM shard_locks AS l
LEFT JOIN (SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM incoming_queue GROUP BY shard_id) AS i
    ON i.shard_id = l.shard_id
LEFT JOIN (SELECT shard_id, count(*) AS n, min(scheduled_at) AS earliest FROM processing_queue GROUP BY shard_id) AS p
    ON p.shard_id = l.shard_id
ORDER BY l.shard_id;

-- name: stats
SELECT
    (SELECT count(*) FROM scheduled_actions),
    (SELECT count(*) FROM incoming_queue),
    (SELECT count(*) FROM processing_queue),
    (SELECT count(*) FROM incoming_queue WHERE scheduled_at <= :now)
        + (SELECT sum((SELECT count(*) FROM processing_queue AS p
                       WHERE p.shard_id = l.shard_id AND p.scheduled_at <= :now)) FROM shard_locks AS l),
    (SELECT min(scheduled_at) FROM incoming_queue),
    (SELECT min((SELECT min(p.scheduled_at) FROM processing_queue AS p WHERE p.shard_id = l.shard_id))
     FROM shard_locks AS l),
    (SELECT count(*) FROM shard_locks),
    (SELECT sum(locked) FROM shard_locks);

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
    WHERE r.shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM shard_locks)
    GROUP BY s.meta_action_id
)
SELECT
    (SELECT count(*) FROM scheduled_actions),
    (SELECT coalesce(sum(n), 0) FROM live),
    (SELECT count(*) FROM rows),
    (SELECT count(*) FROM live),
    (SELECT count(*) FROM live WHERE n > 1);

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
    WHERE shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM shard_locks)
    UNION ALL
    SELECT 0, shard_id, scheduled_at, action_id, action_guid, scheduled_at, last_reschedule_at FROM processing_queue
    WHERE shard_id BETWEEN 0 AND (SELECT max(shard_id) FROM shard_locks)
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

-- name: install_lock
INSERT INTO shard_locks VALUES (?, 0, '', '', 0, 0);

-- name: count_locks
SELECT count(*) FROM shard_locks;

-- For an application that creates an action in a transaction of its own: without the temporary tables.
-- name: write_life
INSERT INTO scheduled_actions (
    meta_action_id_hash, meta_action_id, meta_action_guid, meta, spec, status, status_scheduled_at
)
VALUES (0, ?, ?, ?, ?, ?, ?)
ON CONFLICT (meta_action_id_hash, meta_action_id) DO UPDATE SET
    meta_action_guid = excluded.meta_action_guid,
    meta = excluded.meta,
    spec = excluded.spec,
    status = excluded.status,
    status_scheduled_at = excluded.status_scheduled_at;

-- name: append_row
INSERT INTO incoming_queue (shard_id, created_at, action_id, action_guid, scheduled_at) VALUES (?, ?, ?, ?, ?);
