"""Upgrades: from an installation of version 1, and by a further migration that a test brings."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from clepsydra.core.ids import Ids
from clepsydra.store.errors import Unusable
from clepsydra.store.install import install
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.installation import (
    MIGRATIONS,
    MIGRATIONS_TABLE,
    TABLES,
    VERSION_1_DIRECTORY,
    connected_installation,
)
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.url import parse_url
from tests.conformance.worlds import Content, World, content_of
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import instead
from tests.ydb_endpoint.scheme import children_of, make_directory

PATH = "/local/clepsydra"
FURTHER = [*MIGRATIONS, "CREATE TABLE IF NOT EXISTS notes (id Uint64 NOT NULL, note Utf8, PRIMARY KEY (id));"]


def ids() -> Ids:
    return Ids(random.Random(1))


async def apply(endpoint: Endpoint, migrations: Sequence[str], shards: int | None = None) -> int:
    """What `clepsydra init` does in a version with these migrations."""
    async with connected_installation(parse_url(endpoint.url()), {}, ids(), migrations) as installation:
        return await install(installation, shards)


@asynccontextmanager
async def opened(endpoint: Endpoint) -> AsyncIterator[YdbStore]:
    store = await YdbStore.open(endpoint.url(), {}, ids())
    try:
        yield store
    finally:
        await store.close()


def names_in(endpoint: Endpoint) -> set[str]:
    return {child.name for child in children_of(endpoint.engine.database, PATH)}


def recorded(endpoint: Endpoint) -> dict[int, int]:
    """The rows of `schema_migrations`: versions, with the times at which they were applied."""
    database = endpoint.engine.database
    rows = database.begin(is_serializable=False).scan(database.tables[f"{PATH}/{MIGRATIONS_TABLE}"], (0,), (1000,))
    return {row["version"]: row["applied_at"] for row in rows}


@asynccontextmanager
async def version_1() -> AsyncIterator[tuple[Endpoint, Content]]:
    """An installation of 4 shards as version 1 made it, with actions in both queues; and its content."""
    async with Endpoint() as endpoint:
        assert await apply(endpoint, MIGRATIONS[:1], 4) == 4
        make_directory(endpoint.engine.database, f"{PATH}/{VERSION_1_DIRECTORY}")
        assert names_in(endpoint) == {*TABLES, VERSION_1_DIRECTORY}
        yield endpoint, await fill(endpoint)


async def fill(endpoint: Endpoint) -> Content:
    """Write actions through a store that was opened without the check of the version."""
    location = parse_url(endpoint.url())
    driver = await connect(location, {})
    sessions = Sessions(driver, location.path, location.limits)
    store = YdbStore(location, driver, sessions, Retry(location, ids()), shards=4)
    world = World(store, store, await store.now(), ids())
    await world.carry_out(*(world.create(f"a{n}", world.at(n), shard_id=n % 4) for n in range(20)))
    await world.migrate(*(due.row for due in (await world.page(0)).incoming))
    content = await content_of(store)
    await store.close()
    return content


async def test_version_1_is_refused_and_upgraded_with_its_actions_untouched() -> None:
    async with version_1() as (endpoint, content):
        with pytest.raises(Unusable, match=r"has schema version 1, .* needs 2; upgrade it with `clepsydra init`"):
            await YdbStore.open(endpoint.url(), {}, ids())
        assert await YdbStore.install(endpoint.url(), None, {}, ids()) == 4
        assert names_in(endpoint) == {*TABLES, MIGRATIONS_TABLE}
        assert list(recorded(endpoint)) == [1, 2]
        async with opened(endpoint) as store:
            assert await content_of(store) == content
            assert (await store.audit(10)).violations == []


async def test_several_processes_can_upgrade_at_once() -> None:
    async with version_1() as (endpoint, content):
        upgrades = (YdbStore.install(endpoint.url(), None, {}, ids()) for _ in range(4))
        assert await asyncio.gather(*upgrades) == [4] * 4
        assert names_in(endpoint) == {*TABLES, MIGRATIONS_TABLE}
        async with opened(endpoint) as store:
            assert await content_of(store) == content


@pytest.mark.parametrize("failing", ["install", "record_migrations"])
async def test_an_interrupted_upgrade_is_finished_by_the_next(failing: str) -> None:
    async with version_1() as (endpoint, content):
        endpoint.faults.plan(instead(Status.UNAUTHORIZED, failing))
        with pytest.raises(Unusable, match="UNAUTHORIZED"):
            await YdbStore.install(endpoint.url(), None, {}, ids())
        with pytest.raises(Unusable, match="has schema version 1"):
            await YdbStore.open(endpoint.url(), {}, ids())
        assert await YdbStore.install(endpoint.url(), None, {}, ids()) == 4
        async with opened(endpoint) as store:
            assert await content_of(store) == content


async def test_an_upgrade_survives_that_the_directory_cannot_be_removed() -> None:
    async with version_1() as (endpoint, _):
        endpoint.faults.plan(instead(Status.UNAUTHORIZED, "RemoveDirectory"))
        with pytest.raises(Unusable, match="UNAUTHORIZED"):
            await YdbStore.install(endpoint.url(), None, {}, ids())
        assert await YdbStore.install(endpoint.url(), None, {}, ids()) == 4
        async with opened(endpoint) as store:
            assert store.shards == 4


async def test_a_further_migration_is_applied_once_with_actions_untouched() -> None:
    async with Endpoint() as endpoint:
        await apply(endpoint, MIGRATIONS, 4)
        async with opened(endpoint) as store:
            world = World(store, store, await store.now(), ids())
            await world.carry_out(world.create("a"))
            before, content = recorded(endpoint), await content_of(store)
            for _ in range(2):
                assert await apply(endpoint, FURTHER) == 4
                assert names_in(endpoint) == {*TABLES, MIGRATIONS_TABLE, "notes"}
                after = recorded(endpoint)
                assert list(after) == [1, 2, 3]
                assert {version: after[version] for version in before} == before
            assert await content_of(store) == content


async def test_a_newer_schema_is_refused() -> None:
    async with Endpoint() as endpoint:
        await apply(endpoint, FURTHER, 4)
        with pytest.raises(Unusable, match=r"has schema version 3, .* knows versions up to 2; upgrade Clepsydra"):
            await YdbStore.open(endpoint.url(), {}, ids())
        with pytest.raises(Unusable, match="upgrade Clepsydra"):
            await YdbStore.install(endpoint.url(), None, {}, ids())
