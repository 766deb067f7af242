"""Makes an installation in a file, and checks one that is there."""

import os

import apsw

from clepsydra.schema import migrations
from clepsydra.store.errors import OtherShards, Unusable
from clepsydra.store.sqlite.connection import APPLICATION_ID, QUERIES, connect
from clepsydra.store.sqlite.errors import translated

SCHEMA_VERSION = len(migrations("sqlite"))

# Actions that are created together lie together, and are begun and finished together: fewer pages are written than with
# the usual 4 KiB. A file keeps the size with which it was made.
_PAGE_BYTES = 8192
# Enough for the sync loops of a few workers on one machine, and few enough to look at all of them often.
_SHARDS_DEFAULT = 8


def install(path: str, shards: int | None) -> int:
    """Create the tables if they are not there. Returns the number of shards, which never changes afterwards.

    Without a number, an installation that is there is fine as it is.
    """
    _refuse_folder(path)
    try:
        connection = connect(path, create=True)
        try:
            # Both are properties of the file, and neither can be changed within a transaction.
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            installed = _install(connection, path, shards)
            connection.execute("COMMIT")
            return installed
        finally:
            connection.close()
    except apsw.Error as error:
        raise translated(error, path) from error


def _install(connection: apsw.Connection, path: str, shards: int | None) -> int:
    version = connection.pragma("user_version")
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
        made = shards or _SHARDS_DEFAULT
        for text in migrations("sqlite"):
            connection.execute(text)
        connection.executemany(QUERIES["install_lock"], [(shard_id,) for shard_id in range(made)])
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
        return made
    _check(connection, path)
    existing = int(connection.execute(QUERIES["count_locks"]).get)
    if shards is not None and existing != shards:
        raise OtherShards(
            f"the store {path} has {existing} shards, not {shards}, and their number cannot change; "
            f"leave the number out, or make a new store"
        )
    return existing


def check(path: str) -> int:
    """Make sure that the file is an installation of this version. Returns the number of shards."""
    if not os.path.exists(path):
        raise Unusable(f"there is no store at {path}; make one with `clepsydra init --store sqlite:///{path}`")
    _refuse_folder(path)
    try:
        connection = connect(path)
        try:
            _check(connection, path)
            return int(connection.execute(QUERIES["count_locks"]).get)
        finally:
            connection.close()
    except apsw.Error as error:
        raise translated(error, path) from error


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise Unusable(f"{path} is a folder, not a store; name a file in it")


def _check(connection: apsw.Connection, path: str) -> None:
    if connection.pragma("application_id") != APPLICATION_ID:
        raise Unusable(
            f"{path} is a SQLite database, but not a store of Clepsydra; name another file, "
            f"or make a store with `clepsydra init`"
        )
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise Unusable(
            f"the store {path} has schema version {version}, and this Clepsydra knows versions up to {SCHEMA_VERSION}; "
            f"upgrade Clepsydra"
        )
