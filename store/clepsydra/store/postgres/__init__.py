"""The store for teams that already run PostgreSQL: one schema of a database, shared by any number of processes."""

from clepsydra.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
