"""Makes an installation in a schema of a database, and checks one that is there."""

import re

import asyncpg

from clepsydra.schema import migrations
from clepsydra.store.errors import OtherShards, Unusable
from clepsydra.store.postgres.address import Address
from clepsydra.store.postgres.errors import FAILURES, translated
from clepsydra.store.postgres.session import SETTINGS, connect, in_schema, statements

SCHEMA_VERSION = len(migrations("postgres"))

# Every number is written in words that are known: the comment is read by people, too.
_VERSION = re.compile(r"Clepsydra schema version (\d+)")
_OLDEST_SERVER = 140_000

# Enough for the sync loops of a few workers, and few enough to look at all of them often.
_SHARDS_DEFAULT = 16


async def install(address: Address, shards: int | None) -> int:
    """Create the tables if they are not there. Returns the number of shards, which never changes afterwards.

    Without a number, an installation that is there is fine as it is. Any number of processes may do this at once.
    """
    try:
        connection = await connect(address)
        try:
            async with connection.transaction():
                return await _install(connection, address, shards)
        finally:
            await connection.close()
    except FAILURES as error:
        raise translated(error, address.shown) from error


async def _install(connection: asyncpg.Connection, address: Address, shards: int | None) -> int:
    named = statements(address.schema)
    await connection.execute(named["lock_installation"], address.schema)
    version = _version(address, *await connection.fetchrow(named["installed"]))
    if version == 0 and not await connection.fetchval(named["schema_exists"], address.schema):
        await connection.execute(named["create_schema"])
    for text in migrations("postgres")[version:]:
        await connection.execute(in_schema(text, address.schema))
    if version == 0:
        made = shards or _SHARDS_DEFAULT
        await connection.execute(named["install_locks"], made)
        return made
    existing = int(await connection.fetchval(named["count_locks"]))
    if shards is not None and existing != shards:
        raise OtherShards(
            f"the store {address.shown} has {existing} shards, not {shards}, and their number cannot change; "
            f"leave the number out, or make a new store in another schema"
        )
    return existing


async def check(connection: asyncpg.Connection, address: Address) -> int:
    """Make sure that the schema is an installation of this version. Returns the number of shards."""
    named = statements(address.schema)
    version = _version(address, *await connection.fetchrow(named["installed"]))
    if version == 0:
        raise Unusable(
            f"there is no store at {address.shown}: its database has no schema {address.schema} of Clepsydra; "
            f"make one with `clepsydra init`"
        )
    if version < SCHEMA_VERSION:
        raise Unusable(
            f"the store {address.shown} has schema version {version}, and this Clepsydra needs {SCHEMA_VERSION}; "
            f"bring it up to date with `clepsydra init`"
        )
    return int(await connection.fetchval(named["count_locks"]))


def _version(address: Address, server: int, plan_cache_mode: str, comment: str | None) -> int:
    """The version of the schema, 0 if there is none; refuses what cannot be worked with."""
    if server < _OLDEST_SERVER:
        raise Unusable(
            f"the store {address.shown} is on PostgreSQL {server // 10_000}, and Clepsydra needs "
            f"{_OLDEST_SERVER // 10_000} or newer"
        )
    if plan_cache_mode != SETTINGS["plan_cache_mode"]:
        raise Unusable(
            f"the store {address.shown} did not take over the session's settings, as behind PgBouncer; "
            f"name PostgreSQL itself in the URL"
        )
    return 0 if comment is None else version_of(comment, address.shown)


def version_of(comment: str | None, shown: str) -> int:
    """The version that the comment of the table of locks tells; a newer one is refused."""
    found = _VERSION.fullmatch(comment or "")
    if found is None:
        raise Unusable(
            f"the store {shown} has a table shard_locks that is not Clepsydra's; name another schema in the URL"
        )
    version = int(found[1])
    if version > SCHEMA_VERSION:
        raise Unusable(
            f"the store {shown} has schema version {version}, and this Clepsydra knows versions up to "
            f"{SCHEMA_VERSION}; upgrade Clepsydra"
        )
    return version
