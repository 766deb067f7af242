-- Making, upgrading and checking an installation.

-- Held until the end of the transaction, so that one process installs at a time.
-- name: lock_installation
SELECT pg_advisory_xact_lock(1668051059, hashtext($1));

-- The comment on shard_locks says that the tables are Clepsydra's, even if the schema also has tables of others.
-- name: look_at_schema
SELECT
    current_setting('server_version_num')::integer,
    current_setting('plan_cache_mode'),
    obj_description(to_regclass('clepsydra.shard_locks'), 'pg_class');

-- name: recorded_version
SELECT max(version) FROM clepsydra.schema_migrations;

-- name: schema_exists
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1);

-- name: create_schema
CREATE SCHEMA clepsydra;

-- name: record_migrations
INSERT INTO clepsydra.schema_migrations (version, applied_at)
SELECT version, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM unnest($1::integer[]) AS version
ON CONFLICT DO NOTHING;

-- name: make_shards
INSERT INTO clepsydra.shard_locks
SELECT shard_id, false, '', '', 0, 0 FROM generate_series(0, $1::integer - 1) AS shard_id;

-- name: count_shards
SELECT count(*)::integer FROM clepsydra.shard_locks;
