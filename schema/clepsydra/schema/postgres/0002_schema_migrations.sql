-- The migrations that were applied, and when. Before this one, the comment on shard_locks said how many. It still does,
-- because an older Clepsydra reads it and must refuse a schema that it does not know.
CREATE TABLE clepsydra.schema_migrations (
    version integer NOT NULL PRIMARY KEY,
    applied_at bigint NOT NULL
);

COMMENT ON TABLE clepsydra.shard_locks IS 'Clepsydra schema version 2';

-- Every process checks the version. A role that was granted the four tables before needs no further grant.
GRANT SELECT ON clepsydra.schema_migrations TO PUBLIC;
