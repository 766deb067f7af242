"""The embedded store: one SQLite file, shared by any number of processes on one machine."""

from clepsydra.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
