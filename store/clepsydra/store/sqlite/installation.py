"""An installation: a SQLite file. `clepsydra.store.install` makes, upgrades and checks it."""

import os
from collections.abc import Sequence

import apsw

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import seconds
from clepsydra.schema import migrations as migrations_of
from clepsydra.store import install as installing
from clepsydra.store.errors import Unusable
from clepsydra.store.sqlite.connection.connect import APPLICATION_ID, STATEMENTS, connect
from clepsydra.store.sqlite.connection.errors import translate
from clepsydra.store.sqlite.connection.network import refuse_network

MIGRATIONS = migrations_of("sqlite")

# Actions that are created together lie together, and are begun and finished together: fewer pages are written than with
# SQLite's default of 4 KiB. A file keeps the page size with which it was made.
_PAGE_BYTES = 8192
# While another process holds the write lock, a process that starts waits for as long as a call may be retried.
_START_TIMEOUT_S = seconds(CALL_RETRY_US)


async def install(path: str, shards: int | None, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Make or upgrade the installation, in one transaction. Any number of processes may do this at once."""
    _refuse_folder(path)
    refuse_network(path)
    try:
        _create_file(path)
        connection = connect(path, busy_timeout_s=_START_TIMEOUT_S)
        try:
            # Both are properties of the file, and neither can be changed within a transaction.
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            existing = await installing.install(SqliteInstallation(connection, path, migrations), shards)
            connection.execute("COMMIT")
            return existing
        finally:
            connection.close()
    except apsw.Error as error:
        raise translate(error, path) from error


async def check(path: str) -> int:
    """Make sure that the file is an installation of this version. Returns its number of shards."""
    _refuse_missing(path)
    _refuse_folder(path)
    refuse_network(path)
    try:
        connection = connect(path, busy_timeout_s=_START_TIMEOUT_S)
        try:
            return await installing.check(SqliteInstallation(connection, path, MIGRATIONS))
        finally:
            connection.close()
    except apsw.Error as error:
        raise translate(error, path) from error


class SqliteInstallation:
    """`clepsydra.store.install.Installation` on one connection."""

    elsewhere = "make a new store in another file"

    def __init__(self, connection: apsw.Connection, path: str, migrations: Sequence[str]) -> None:
        self.migrations = migrations
        self._connection = connection
        self._path = path

    def __str__(self) -> str:
        return self._path

    async def version(self) -> int:
        """The header of the file says it, so that every version of Clepsydra can read it."""
        version: int = self._connection.pragma("user_version")
        if self._connection.pragma("application_id") == APPLICATION_ID:
            return version
        if version == 0 and self._connection.execute(STATEMENTS["count_objects"]).get == 0:
            return 0
        raise Unusable(
            f"{self} is a SQLite database, but not a store of Clepsydra; name another file, "
            "or make a store with `clepsydra init`"
        )

    async def apply(self, version: int, shards: int) -> None:
        del shards
        self._connection.execute(self.migrations[version - 1])
        self._connection.pragma("application_id", APPLICATION_ID)
        self._connection.pragma("user_version", version)

    async def record(self, versions: Sequence[int]) -> None:
        self._connection.executemany(STATEMENTS["record_migration"], [(version,) for version in versions])

    async def count_shards(self) -> int:
        return int(self._connection.execute(STATEMENTS["count_shards"]).get)

    async def make_shards(self, count: int) -> None:
        self._connection.executemany(STATEMENTS["make_shard"], [(shard_id,) for shard_id in range(count)])


def _create_file(path: str) -> None:
    """Others may not read it, because payloads may be secret. SQLite gives the log and the shared memory its mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise Unusable(
            f"the store {path} cannot be opened; check that its folder exists and may be written to"
        ) from error


def _refuse_missing(path: str) -> None:
    if not os.path.exists(path):
        raise Unusable(f"there is no store at {path}; make one with `clepsydra init --store sqlite:///{path}`")


def _refuse_folder(path: str) -> None:
    if os.path.isdir(path):
        raise Unusable(f"{path} is a folder, not a store; name a file in it")
