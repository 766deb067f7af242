-- Making and checking an installation.

-- name: make_shard
INSERT INTO shard_locks VALUES (?, 0, '', '', 0, 0);

-- name: count_shards
SELECT count(*) FROM shard_locks;

-- name: count_objects
SELECT count(*) FROM sqlite_schema;

-- name: record_migration
INSERT INTO schema_migrations (version, applied_at) VALUES (?, CAST(unixepoch('subsec') * 1000000 AS INTEGER))
ON CONFLICT (version) DO NOTHING;
