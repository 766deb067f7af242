"""An installation: a directory of a database with five tables. `clepsydra.store.install` says how it is made.

The table `schema_migrations` has a row for each migration that was applied. Installations that were made before that
table have an empty directory `schema_version_1` beside the other tables instead. Both are written last: a directory
without a recorded version may be unfinished and counts as no installation, and `clepsydra init` finishes it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import ydb
from ydb.aio.driver import Driver

from clepsydra.core.ids import Ids
from clepsydra.schema import migrations
from clepsydra.store.errors import StoreError, Unusable
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.errors import harmless_failure, write_failure
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.connection.version import warn_if_old
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.url import Location

MIGRATIONS = migrations("ydb")

TABLES = ("scheduled_actions", "incoming_queue", "processing_queue", "shard_locks")
MIGRATIONS_TABLE = "schema_migrations"
# Recorded version 1 before there was a table for it.
VERSION_1_DIRECTORY = "schema_version_1"

# More partitions than this would cost more at the start than they save.
_PARTITIONS_MAX = 256
_ACTION_PARTITIONS_MIN = 4
_ACTION_PARTITIONS_MAX = 64


class YdbInstallation:
    """What YDB contributes to `clepsydra.store.install`."""

    elsewhere = "name another path in the store's URL"

    def __init__(
        self,
        location: Location,
        driver: Driver,
        sessions: Sessions,
        retry: Retry,
        migrations: Sequence[str] = MIGRATIONS,
    ) -> None:
        self.migrations = migrations
        self._location = location
        self._scheme_client = driver.scheme_client
        self._sessions = sessions
        self._retry = retry

    def __str__(self) -> str:
        return str(self._location)

    async def version(self) -> int:
        names = await self._names()
        version = 1 if VERSION_1_DIRECTORY in names else 0
        if MIGRATIONS_TABLE in names:
            # A table without rows: an installation or an upgrade was interrupted.
            version = max(await self._applied_migrations(), default=version)
        lost = [table for table in TABLES if table not in names]
        if version and lost:
            raise Unusable(f"the store {self} has lost its table {lost[0]}; restore the directory from a backup")
        return version

    async def _applied_migrations(self) -> list[int]:
        sent = {"$from_version": parameters.number(1)}

        async def read() -> list[int]:
            try:
                results = await self._sessions.read("applied_migrations", sent)
            except StoreError as error:
                # The table is listed, and another process has not finished making it.
                if _is_missing(error):
                    return []
                raise
            return [row["version"] for row in results.rows()]

        return await self._retry.call(read)

    async def apply(self, version: int, shards: int) -> None:
        if version == 1:
            await self._make_directories()
        ddl = self.migrations[version - 1].format_map(partitioning(shards))
        limits = self._location.limits
        # While another process makes a table, the server answers OVERLOADED.
        await self._retry.call(lambda: self._sessions.execute_ddl(ddl, limits.ddl_timeout_s), limits.ddl_retry_s)

    async def record(self, versions: Sequence[int]) -> None:
        sent = {"$versions": parameters.versions(versions)}
        await self._retry.call(lambda: self._sessions.write("record_migrations", sent))
        if VERSION_1_DIRECTORY in await self._names():
            # A Clepsydra that knows this directory alone would take a newer schema for version 1.
            await self._remove_directory(f"{self._location.path}/{VERSION_1_DIRECTORY}")

    async def count_shards(self) -> int:
        shards = await self._count_locks()
        if shards == 0:
            raise Unusable(f"the store {self} has lost all rows of shard_locks; restore the directory from a backup")
        return shards

    async def make_shards(self, count: int) -> None:
        if await self._count_locks() == 0:
            await self._retry.call(lambda: self._insert_locks(count))

    async def _insert_locks(self, count: int) -> None:
        try:
            await self._sessions.write("install_locks", {"$locks": parameters.new_locks(count)})
        except StoreError as error:
            # INSERT refuses keys that exist: an earlier try or another process has made the rows.
            if not isinstance(error.__cause__, ydb.issues.PreconditionFailed):
                raise

    async def _count_locks(self) -> int:
        results = await self._retry.call(lambda: self._sessions.read("count_locks", {}))
        shards: int = results.rows()[0]["shards"]
        return shards

    async def _names(self) -> set[str]:
        """The names in the directory; none if it does not exist."""

        async def list_directory() -> set[str]:
            try:
                listed = await self._list(self._location.path)
            except StoreError as error:
                if _is_missing(error):
                    return set()
                raise
            return {child.name for child in listed.children}

        return await self._retry.call(list_directory)

    async def _list(self, path: str) -> Any:
        return await self._scheme(self._scheme_client.list_directory, path, failure=harmless_failure)

    async def _make_directories(self) -> None:
        """Only those that are missing: to make one, even one that exists, takes a right on the directory above it."""
        missing: list[str] = []
        path = self._location.path
        while path != self._location.database and not await self._is_there(path):
            missing.append(path)
            path = path.rpartition("/")[0]
        for path in reversed(missing):
            await self._make_directory(path)

    async def _is_there(self, path: str) -> bool:
        async def look() -> bool:
            try:
                await self._list(path)
            except StoreError as error:
                if _is_missing(error):
                    return False
                # A directory above ours need not be shown to us.
                if not isinstance(error.__cause__, ydb.issues.Unauthorized):
                    raise
            return True

        return await self._retry.call(look)

    async def _make_directory(self, path: str) -> None:
        """Making a directory that exists changes nothing."""
        await self._retry.call(lambda: self._scheme(self._scheme_client.make_directory, path, failure=write_failure))

    async def _remove_directory(self, path: str) -> None:
        async def remove() -> None:
            try:
                await self._scheme(self._scheme_client.remove_directory, path, failure=write_failure)
            except StoreError as error:
                # An earlier try or another process has removed it.
                if not _is_missing(error):
                    raise

        await self._retry.call(remove)

    async def _scheme(
        self, call: Callable[..., Awaitable[Any]], path: str, failure: Callable[[Exception], StoreError]
    ) -> Any:
        settings = ydb.BaseRequestSettings().with_timeout(self._location.limits.timeout_s)
        try:
            return await call(path, settings)
        except (ydb.Error, TimeoutError) as error:
            raise failure(error) from error


def _is_missing(error: StoreError) -> bool:
    return isinstance(error.__cause__, ydb.issues.SchemeError | ydb.issues.NotFound)


@asynccontextmanager
async def connected_installation(
    location: Location, environment: Mapping[str, str], ids: Ids, migrations: Sequence[str] = MIGRATIONS
) -> AsyncIterator[YdbInstallation]:
    """The installation at a location, seen through a connection of its own."""
    driver = await connect(location, environment)
    sessions = Sessions(driver, location.path, location.limits)
    try:
        await warn_if_old(sessions)
        yield YdbInstallation(location, driver, sessions, Retry(location, ids), migrations)
    finally:
        await sessions.close()
        await driver.stop()


def partitioning(shards: int) -> dict[str, str]:
    """The values for the braces in the DDL.

    >>> partitioning(4)["split_at_shards"], partitioning(4)["queue_partitions"]
    ('PARTITION_AT_KEYS = (1, 2, 3),', '4')
    >>> partitioning(1)["split_at_shards"]
    ''
    """
    step = -(-shards // _PARTITIONS_MAX)
    boundaries = range(step, shards, step)
    keys = ", ".join(map(str, boundaries))
    return {
        "split_at_shards": f"PARTITION_AT_KEYS = ({keys})," if keys else "",
        "queue_partitions": str(len(boundaries) + 1),
        "action_partitions": str(min(max(shards, _ACTION_PARTITIONS_MIN), _ACTION_PARTITIONS_MAX)),
    }
