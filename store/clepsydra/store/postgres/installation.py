"""An installation: a schema of a database. `clepsydra.store.install` makes, upgrades and checks it."""

import re
from collections.abc import Sequence

import asyncpg

from clepsydra.schema import migrations as migrations_of
from clepsydra.store import install as installing
from clepsydra.store.errors import Unusable
from clepsydra.store.postgres.calls import FAILURES, translate
from clepsydra.store.postgres.session import SETTINGS, connect, in_schema, statements
from clepsydra.store.postgres.url import PostgresUrl

MIGRATIONS = migrations_of("postgres")

_OLDEST_SERVER = 140_000
# The comment on shard_locks.
_COMMENT = re.compile(r"Clepsydra schema version (\d+)")


async def install(url: PostgresUrl, shards: int | None, migrations: Sequence[str] = MIGRATIONS) -> int:
    """Make or upgrade the installation, in one transaction. Any number of processes may do this at once."""
    try:
        connection = await connect(url)
        try:
            async with connection.transaction():
                await connection.execute(statements(url.schema)["lock_installation"], url.schema)
                return await installing.install(PostgresInstallation(connection, url, migrations), shards)
        finally:
            await connection.close()
    except FAILURES as error:
        raise translate(error, url.shown) from error


async def check(connection: asyncpg.Connection, url: PostgresUrl) -> int:
    """Make sure that there is an installation of this version. Returns its number of shards."""
    return await installing.check(PostgresInstallation(connection, url, MIGRATIONS))


class PostgresInstallation:
    """`clepsydra.store.install.Installation` on one connection."""

    elsewhere = "make a new store in another schema"

    def __init__(self, connection: asyncpg.Connection, url: PostgresUrl, migrations: Sequence[str]) -> None:
        self.migrations = migrations
        self._connection = connection
        self._url = url
        self._statements = statements(url.schema)

    def __str__(self) -> str:
        return self._url.shown

    async def version(self) -> int:
        """A schema that was made before migration 2 has no table of migrations, but a comment on shard_locks."""
        server, plan_cache_mode, comment = await self._connection.fetchrow(self._statements["look_at_schema"])
        self._check_server(server, plan_cache_mode)
        if comment is None:
            return 0
        found = _COMMENT.fullmatch(comment)
        if found is None:
            raise Unusable(
                f"the store {self} has a table shard_locks that is not Clepsydra's; name another schema in the URL"
            )
        if int(found[1]) < installing.FIRST_RECORDED:
            return int(found[1])
        return int(await self._connection.fetchval(self._statements["recorded_version"]))

    async def apply(self, version: int, shards: int) -> None:
        del shards
        if version == 1 and not await self._connection.fetchval(self._statements["schema_exists"], self._url.schema):
            await self._connection.execute(self._statements["create_schema"])
        await self._connection.execute(in_schema(self.migrations[version - 1], self._url.schema))

    async def record(self, versions: Sequence[int]) -> None:
        await self._connection.execute(self._statements["record_migrations"], list(versions))

    async def count_shards(self) -> int:
        return int(await self._connection.fetchval(self._statements["count_shards"]))

    async def make_shards(self, count: int) -> None:
        await self._connection.execute(self._statements["make_shards"], count)

    def _check_server(self, version: int, plan_cache_mode: str) -> None:
        if version < _OLDEST_SERVER:
            raise Unusable(
                f"the store {self} is on PostgreSQL {version // 10_000}, and Clepsydra needs "
                f"{_OLDEST_SERVER // 10_000} or newer"
            )
        if plan_cache_mode != SETTINGS["plan_cache_mode"]:
            raise Unusable(
                f"the server of the store {self} did not receive the session's settings, as behind PgBouncer; "
                "name PostgreSQL itself in the URL"
            )
