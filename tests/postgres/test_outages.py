"""The server crashes and restarts, or a standby takes over: calls go on, and nothing is lost or doubled."""

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Action, Put, PutResult
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import DONE, World
from tests.postgres.installations import Installation
from tests.postgres.server import Server, following, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests may kill. Each test leaves it running."""
    with running() as started:
        yield started


@pytest.fixture
async def installation(server: Server) -> Installation:
    place = Installation(server.url)
    await PostgresStore.install(place.url, 4)
    return place


class Traffic:
    """Creates one action after the other, and repeats each creation until it is acknowledged."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.acknowledged: list[Action] = []
        self.created = asyncio.Condition()
        self.stopped = False

    async def flow(self) -> None:
        n = 0
        while not self.stopped:
            n += 1
            put = self.world.create(f"a{n:06}", shard_id=n % 4)
            while await self._try(put) != [DONE]:
                assert not self.stopped, "the last creation was not acknowledged"
            self.acknowledged.append(put.action)
            async with self.created:
                self.created.notify_all()

    async def _try(self, put: Put) -> list[PutResult]:
        try:
            return await self.world.store.put([put])
        except (Unavailable, OutcomeUnknown):
            return []

    async def wait_for_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        async with self.created:
            await self.created.wait_for(lambda: len(self.acknowledged) >= wanted)


async def test_an_immediate_restart_loses_nothing_and_doubles_nothing(server: Server, store: PostgresStore) -> None:
    world = World(store, store, await store.now(), Ids.from_system())
    traffic = Traffic(world)
    flowing = asyncio.create_task(traffic.flow())
    for _ in range(3):
        await traffic.wait_for_more(50)
        await asyncio.to_thread(server.restart, "immediate")
    await traffic.wait_for_more(50)
    traffic.stopped = True
    await flowing
    assert await store.get([action.action_id for action in traffic.acknowledged]) == traffic.acknowledged
    await world.assert_sound(actions=len(traffic.acknowledged))


async def test_wakeups_arrive_again_after_a_restart(
    server: Server, store: PostgresStore, installation: Installation
) -> None:
    other = await PostgresStore.open(installation.url, SystemClock())
    world = World(store, other, await store.now(), Ids.from_system())
    waiting = asyncio.create_task(other.wait(2, 60))
    await asyncio.to_thread(server.restart, "fast")
    assert await waiting, "after a break every shard is woken"
    again = asyncio.create_task(other.wait(2, 60))
    await world.carry_out(world.create("a", shard_id=2))
    assert await again
    await other.close()


async def test_a_server_that_is_down_is_unavailable_until_it_is_back(server: Server, store: PostgresStore) -> None:
    server.stop("fast")
    try:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await store.now()
    finally:
        server.start()
    assert await store.now() > 0


async def test_a_server_that_turns_read_only_is_unavailable_until_it_can_be_written_to(
    server: Server, store: PostgresStore
) -> None:
    """As a primary does that becomes a standby."""
    world = World(store, store, await store.now(), Ids.from_system())
    await world.carry_out(world.create("a"))
    await query(server, "ALTER SYSTEM SET default_transaction_read_only = on")
    await query(server, "SELECT pg_reload_conf()")
    while await query(server, "SHOW default_transaction_read_only") != "on":
        pass
    put = world.create("b")
    try:
        with pytest.raises(Unavailable, match=r"accepts no writes|no host that accepts writes"):
            await store.put([put])
    finally:
        await query(server, "ALTER SYSTEM RESET default_transaction_read_only")
        await query(server, "SELECT pg_reload_conf()")
    traffic = Traffic(world)
    flowing = asyncio.create_task(traffic.flow())
    await traffic.wait_for_more(1)
    traffic.stopped = True
    await flowing


async def test_a_standby_takes_over() -> None:
    """The URL names both hosts, and the store is on the one that accepts writes."""
    with running() as primary, following(primary) as standby:
        # The standby is named first: it accepts connections, but no writes.
        url = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres"
        await PostgresStore.install(url, 4)
        store = await PostgresStore.open(url, SystemClock())
        world = World(store, store, await store.now(), Ids.from_system())
        [action] = await world.carry_out(world.create("before"))
        await wait_until_caught_up(primary, standby)
        primary.stop("immediate")
        await asyncio.to_thread(standby.promote)
        traffic = Traffic(world)
        flowing = asyncio.create_task(traffic.flow())
        await traffic.wait_for_more(10)
        traffic.stopped = True
        await flowing
        assert await store.get(["before"]) == [action]
        await world.assert_sound(actions=1 + len(traffic.acknowledged))
        await store.close()


async def wait_until_caught_up(primary: Server, standby: Server) -> None:
    """Replication is asynchronous here: wait until the standby has received everything."""
    written = await query(primary, "SELECT pg_current_wal_lsn()::text")
    while not await query(standby, f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"):
        pass


async def query(server: Server, statement: str) -> object:
    connection = await asyncpg.connect(server.url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
