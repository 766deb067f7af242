"""Makes an installation in a directory of a database, and checks one that is there.

The schema's version is recorded as an empty directory beside the tables: `schema_version_1`. It is made last, so a
directory without one is not an installation yet, and one listing of the directory tells all there is to know.
"""

import re
from collections.abc import Mapping
from typing import Any

import ydb
from ydb.aio.driver import Driver

from clepsydra.core.ids import Ids
from clepsydra.schema import migrations
from clepsydra.store.errors import OtherShards, Unusable
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection import connect
from clepsydra.store.ydb.errors import Failed, Nature, after_sending
from clepsydra.store.ydb.location import Location
from clepsydra.store.ydb.sessions import Sessions
from clepsydra.store.ydb.tries import Tries

MIGRATIONS = migrations("ydb")
SCHEMA_VERSION = len(MIGRATIONS)

TABLES = ("scheduled_actions", "incoming_queue", "processing_queue", "shard_locks")

# Enough for the sync loops of a small fleet; more shards than loops wait their turn.
_SHARDS_DEFAULT = 16
# Splitting a table further than this from the start would cost more than it saves.
_PARTITIONS_MAX = 256
_ACTION_PARTITIONS_MIN = 4
_ACTION_PARTITIONS_MAX = 64

_VERSION = re.compile(r"schema_version_([0-9]+)")
_DDL_TIMEOUT_S = 60.0


async def install(location: Location, environment: Mapping[str, str], shards: int | None, ids: Ids) -> int:
    """Create what is missing. Returns the number of shards, which never changes afterwards."""
    driver = await connect(location, environment)
    try:
        sessions = Sessions(driver, location.path, location.limits)
        try:
            return await _Installing(location, driver, sessions, Tries(location, ids)).install(shards)
        finally:
            await sessions.close()
    finally:
        await driver.stop()


async def check(location: Location, driver: Driver, sessions: Sessions, tries: Tries) -> int:
    """Make sure that the directory holds an installation of this version. Returns the number of shards."""
    installing = _Installing(location, driver, sessions, tries)
    version = await installing.version()
    if version == 0:
        raise Unusable(f"there is no store at {location}; make one with `clepsydra init` and the same store URL")
    if version < SCHEMA_VERSION:
        raise Unusable(
            f"the store {location} has schema version {version}, and this Clepsydra needs {SCHEMA_VERSION}; "
            "upgrade it with `clepsydra init` and the same store URL"
        )
    return await installing.count_shards()


class _Installing:
    def __init__(self, location: Location, driver: Driver, sessions: Sessions, tries: Tries) -> None:
        self._location = location
        self._driver = driver
        self._sessions = sessions
        self._tries = tries

    async def version(self) -> int:
        """0: there is no installation, or an unfinished one."""
        names = await self._names()
        version = max((int(match[1]) for match in map(_VERSION.fullmatch, names) if match), default=0)
        if version > SCHEMA_VERSION:
            raise Unusable(
                f"the store {self._location} has schema version {version}, and this Clepsydra knows versions up to "
                f"{SCHEMA_VERSION}; upgrade Clepsydra"
            )
        missing = [table for table in TABLES if table not in names]
        if version and missing:
            raise Unusable(
                f"the store {self._location} has lost its table {missing[0]}; restore the directory from a backup"
            )
        return version

    async def install(self, shards: int | None) -> int:
        version = await self.version()
        if version == 0:
            await self._make_directories()
        made = shards or _SHARDS_DEFAULT
        for number in range(version, SCHEMA_VERSION):
            await self._execute(MIGRATIONS[number].format_map(partitioning(made)))
        if version == 0:
            await self._make_locks(made)
        for number in range(version, SCHEMA_VERSION):
            await self._make_directory(f"{self._location.path}/schema_version_{number + 1}")
        existing = await self.count_shards()
        if shards is not None and existing != shards:
            raise OtherShards(
                f"the store {self._location} has {existing} shards, not {shards}, and their number cannot change; "
                "leave the number out, or make a new store at another path"
            )
        return existing

    async def count_shards(self) -> int:
        results = await self._tries.read(lambda: self._sessions.read("count_locks", {}))
        shards: int = results.rows()[0]["shards"]
        if shards == 0:
            raise Unusable(f"the store {self._location} has no shards; make it anew with `clepsydra init`")
        return shards

    async def _make_locks(self, shards: int) -> None:
        """Unless an earlier or a concurrent installation made them: INSERT fails on what is there."""
        results = await self._tries.read(lambda: self._sessions.read("count_locks", {}))
        if results.rows()[0]["shards"]:
            return

        async def insert() -> None:
            try:
                await self._sessions.write("install_locks", {"$locks": parameters.fresh_locks(shards)})
            except Failed as failed:
                if not isinstance(failed.__cause__, ydb.issues.PreconditionFailed):
                    raise

        await self._tries.write(insert)

    async def _execute(self, ddl: str) -> None:
        text = f'-- clepsydra install\nPRAGMA TablePathPrefix("{self._location.path}");\n\n{ddl}'
        await self._tries.write(lambda: self._sessions.execute_ddl(text, _DDL_TIMEOUT_S))

    async def _make_directories(self) -> None:
        path = self._location.database
        for name in self._location.directory.split("/"):
            path = f"{path}/{name}"
            await self._make_directory(path)

    async def _make_directory(self, path: str) -> None:
        await self._tries.write(lambda: self._scheme(self._driver.scheme_client.make_directory, path))

    async def _names(self) -> set[str]:
        """What lies in the directory; nothing if it is not there."""

        async def read() -> set[str]:
            try:
                listed = await self._scheme(self._driver.scheme_client.list_directory, self._location.path)
            except Failed as failed:
                if isinstance(failed.__cause__, ydb.issues.SchemeError | ydb.issues.NotFound):
                    return set()
                raise
            return {child.name for child in listed.children}

        return await self._tries.read(read)

    async def _scheme(self, call: Any, path: str) -> Any:
        settings = ydb.BaseRequestSettings().with_timeout(self._location.limits.timeout_s)
        try:
            return await call(path, settings)
        except (ydb.Error, TimeoutError) as error:
            failed = after_sending(error)
            if failed.nature is Nature.UNKNOWN:
                # Making a directory again, or listing it again, is harmless.
                failed = Failed(Nature.NOT_DONE, str(failed))
            raise failed from error


def partitioning(shards: int) -> dict[str, str]:
    """What the DDL leaves open.

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
