-- The migrations that were applied, and when. Before this one, the file's user_version said how many.
CREATE TABLE schema_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL
) STRICT;
