-- Each connection has these temporary tables, in memory. A batch that has to be judged is loaded into one of them.

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
    action_id TEXT
);
