"""`init`: once, again, by two processes at once, after an interruption; and what it refuses."""

import asyncio
import random

import pytest

from clepsydra.core.ids import Ids
from clepsydra.store.errors import OtherShards, Unavailable, Unusable
from clepsydra.store.install import SHARDS_DEFAULT
from clepsydra.store.install import install as install_into
from clepsydra.store.url import install_store, open_store
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.installation import MIGRATIONS_TABLE, TABLES, connected_installation
from clepsydra.store.ydb.url import parse_url
from tests.conformance.backends import TestClock
from tests.conformance.worlds import DONE, World
from tests.ydb_endpoint import Endpoint, Engine
from tests.ydb_endpoint.endpoint import DATABASE
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import instead
from tests.ydb_endpoint.limits import Rights, ServerLimits
from tests.ydb_endpoint.scheme import children_of, make_directory

PATH = "/local/clepsydra"


def ids() -> Ids:
    return Ids(random.Random(1))


async def install(endpoint: Endpoint, shards: int | None = 4, path: str = "clepsydra") -> int:
    return await YdbStore.install(endpoint.url(path), shards, {}, ids())


async def test_an_installation_has_five_tables_and_nothing_else() -> None:
    async with Endpoint() as endpoint:
        assert await install(endpoint) == 4
        names = [child.name for child in children_of(endpoint.engine.database, PATH)]
        assert sorted(names) == sorted([*TABLES, MIGRATIONS_TABLE])


async def test_the_tables_are_split_and_may_split_further() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint, 8)
        tables = endpoint.engine.database.tables
        for name in ("incoming_queue", "processing_queue"):
            settings = tables[f"{PATH}/{name}"].settings
            assert settings["PARTITION_AT_KEYS"] == [1, 2, 3, 4, 5, 6, 7]
            assert settings["AUTO_PARTITIONING_MIN_PARTITIONS_COUNT"] == 8
        for name in TABLES:
            settings = tables[f"{PATH}/{name}"].settings
            assert settings["AUTO_PARTITIONING_BY_LOAD"] is True
            assert settings["AUTO_PARTITIONING_BY_SIZE"] is True
            assert settings["AUTO_PARTITIONING_MAX_PARTITIONS_COUNT"] > 50


async def test_a_repeated_init_changes_nothing() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint)
        store = await YdbStore.open(endpoint.url(), {}, ids())
        world = World(store, store, await store.now(), ids())
        [action] = await world.carry_out(world.create("a"))
        acquired = await store.acquire("lock", "worker", world.now_us, 0)
        before = await store.locks()
        assert await install(endpoint) == 4
        assert await install(endpoint, None) == 4
        assert await store.get(["a"]) == [action]
        assert await store.locks() == before
        assert acquired is not None
        await store.close()


async def test_another_number_of_shards_is_refused() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint)
        with pytest.raises(OtherShards, match=r"has 4 shards, not 8.*name another path"):
            await install(endpoint, 8)
        assert await install(endpoint, None) == 4


async def test_several_processes_can_install_at_once() -> None:
    async with Endpoint() as endpoint:
        counts = await asyncio.gather(*(install(endpoint) for _ in range(4)))
        assert counts == [4] * 4


async def test_two_processes_that_install_different_numbers_of_shards_do_not_both_succeed() -> None:
    async with Endpoint() as endpoint:
        results = await asyncio.gather(*(install(endpoint, shards) for shards in (4, 6)), return_exceptions=True)
        counts = [count for count in results if isinstance(count, int)]
        assert len(counts) == 1
        assert await install(endpoint, None) == counts[0]


async def test_one_database_holds_many_installations() -> None:
    async with Endpoint() as endpoint:
        for path, shards in (("one", 2), ("team/two", 3)):
            assert await install(endpoint, shards, path) == shards
        stores = [await YdbStore.open(endpoint.url(path), {}, ids()) for path in ("one", "team/two")]
        world = World(stores[0], stores[0], await stores[0].now(), ids())
        await world.carry_out(world.create("a"))
        assert [store.shards for store in stores] == [2, 3]
        assert await stores[1].get(["a"]) == [None]
        for store in stores:
            await store.close()


@pytest.mark.parametrize(
    ("failing", "after"),
    [("MakeDirectory", 0), ("install", 0), ("install_locks", 0), ("install", 1), ("record_migrations", 0)],
)
async def test_an_interrupted_init_is_finished_by_the_next(failing: str, after: int) -> None:
    async with Endpoint() as endpoint:
        endpoint.faults.plan(instead(Status.UNAUTHORIZED, failing, after=after))
        with pytest.raises(Unusable):
            await install(endpoint)
        with pytest.raises(Unusable, match=r"there is no store at .*clepsydra init"):
            await YdbStore.open(endpoint.url(), {}, ids())
        assert await install(endpoint) == 4
        store = await YdbStore.open(endpoint.url(), {}, ids())
        assert store.shards == 4
        await store.close()


@pytest.mark.parametrize(
    "call", ["ListDirectory", "MakeDirectory", "install", "count_locks", "install_locks", "record_migrations"]
)
@pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.OVERLOADED, Status.ABORTED])
async def test_init_survives_a_fault(call: str, status: Status) -> None:
    async with Endpoint() as endpoint:
        endpoint.faults.plan(instead(status, call))
        assert await install(endpoint) == 4
        assert endpoint.faults.injected == 1


async def test_a_lost_table_is_reported() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint)
        del endpoint.engine.database.tables[f"{PATH}/incoming_queue"]
        with pytest.raises(Unusable, match="has lost its table incoming_queue"):
            await YdbStore.open(endpoint.url(), {}, ids())


async def test_a_store_that_was_never_made_is_refused() -> None:
    async with Endpoint() as endpoint:
        with pytest.raises(Unusable, match=r"there is no store at .*clepsydra init"):
            await YdbStore.open(endpoint.url("elsewhere"), {}, ids())


async def test_the_url_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YDB_ANONYMOUS_CREDENTIALS", "1")
    async with Endpoint() as endpoint:
        assert await install_store(endpoint.url(), None) == SHARDS_DEFAULT
        store = await open_store(endpoint.url(), TestClock())
        world = World(store, store, await store.now(), ids())
        assert await store.put([world.create("a")]) == [DONE]
        await store.close()


async def test_a_closed_store_says_so() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint)
        store = await YdbStore.open(endpoint.url(), {}, ids())
        await store.close()
        with pytest.raises((Unusable, Unavailable), match="closed"):
            await store.now()


async def test_init_needs_no_right_above_its_directory() -> None:
    """An administrator has made the directory, and gave it to the user of the installation."""
    async with Endpoint() as endpoint:
        database = endpoint.engine.database
        for path in ("/local/team", "/local/team/timers"):
            make_directory(database, path)
        database.rights = Rights("/local/team/timers")
        assert await install(endpoint, 4, "team/timers") == 4
        store = await YdbStore.open(endpoint.url("team/timers"), {}, ids())
        assert store.shards == 4
        await store.close()


async def test_init_makes_the_directories_that_are_missing_and_no_others() -> None:
    async with Endpoint() as endpoint:
        database = endpoint.engine.database
        make_directory(database, "/local/team")
        database.rights = Rights("/local/team")
        assert await install(endpoint, 4, "team/our/timers") == 4
        assert len([each for each in endpoint.engine.requests if each.rpc == "MakeDirectory"]) == 2
        assert {"/local/team/our", "/local/team/our/timers"} <= database.directories


async def test_init_without_the_right_to_make_its_directory_says_so() -> None:
    async with Endpoint() as endpoint:
        make_directory(endpoint.engine.database, "/local/team")
        endpoint.engine.database.rights = Rights("/local/team")
        with pytest.raises(Unusable, match="UNAUTHORIZED Access denied"):
            await install(endpoint, 4, "other/timers")


async def test_a_user_who_may_only_read_is_told_so() -> None:
    async with Endpoint() as endpoint:
        await install(endpoint)
        endpoint.engine.database.rights.may_write = False
        store = await YdbStore.open(endpoint.url(), {}, ids())
        with pytest.raises(Unusable, match=r"UNAUTHORIZED Access denied.*ask for permission"):
            await store.check_writable()
        await store.close()


async def test_init_waits_for_another_init_that_makes_the_same_tables() -> None:
    """Making a table takes longer here than any other call is tried again."""
    async with Endpoint(Engine(DATABASE, limits=ServerLimits(creation_s=0.1))) as endpoint:
        location = parse_url(endpoint.url())
        short = location._replace(limits=location.limits._replace(retry_s=0.05))

        async def init() -> int:
            async with connected_installation(short, {}, ids()) as installation:
                return await install_into(installation, 4)

        assert list(await asyncio.gather(init(), init(), init())) == [4, 4, 4]


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("24.4.4.12", True), ("25.3.1.26", True), ("25.3.1.27", False), ("25.3.1.ent.3", False), ("stable-25-1", True),
     ("26.1.1.6", False), ("main", False), ("", False)],
)  # fmt: skip
async def test_a_server_below_the_minimum_version_is_warned_about(
    version: str, is_old: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with Endpoint(Engine(DATABASE, version=version)) as endpoint:
        await install(endpoint)
        await (await YdbStore.open(endpoint.url(), {}, ids())).close()
    warnings = [record.getMessage() for record in caplog.records if "known defects" in record.getMessage()]
    assert len(warnings) == (2 if is_old else 0)
    assert all(f"runs YDB {version}" in warning and "25.3.1.27" in warning for warning in warnings)


async def test_a_server_that_does_not_tell_its_version_can_be_used(caplog: pytest.LogCaptureFixture) -> None:
    async with Endpoint() as endpoint:
        endpoint.faults.plan(instead(Status.GENERIC_ERROR, "server_version", times=2))
        assert await install(endpoint) == 4
        await (await YdbStore.open(endpoint.url(), {}, ids())).close()
    assert not caplog.records
