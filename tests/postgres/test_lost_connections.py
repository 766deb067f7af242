"""A connection that breaks during a call: before the server did it, after it did it, and all connections at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from clepsydra.store.errors import OutcomeUnknown
from clepsydra.store.port import Advance, AdvanceOutcome, Lock, PutOutcome, Store
from clepsydra.store.postgres import PostgresStore
from clepsydra.store.postgres.session import statements
from tests.conformance.worlds import DONE, World, begin, finish, incoming_row
from tests.postgres.installations import Installation
from tests.postgres.wire import Loss, Wire

LOSSES = pytest.mark.parametrize("loss", Loss, ids=lambda loss: loss.value)

UNKNOWN = AdvanceOutcome.UNKNOWN


class Breaking:
    """A store behind a wire that loses the next execution of a statement."""

    def __init__(self, store: PostgresStore, wire: Wire, installation: Installation) -> None:
        self.store = store
        self._wire = wire
        self._statements = statements(installation.schema)

    def lose(self, name: str, loss: Loss) -> None:
        self._wire.lose(self._statements[name], loss)

    def assert_lost(self) -> None:
        assert self._wire.lost.is_set(), "nothing was lost, so the test shows nothing"


@pytest.fixture
def breaking(wired: PostgresStore, wire: Wire, installation: Installation) -> Breaking:
    return Breaking(wired, wire, installation)


@LOSSES
async def test_a_put_is_done_once(world: World, breaking: Breaking, loss: Loss) -> None:
    changed, labelled = await world.carry_out(world.create("changed"), world.create("labelled"))
    breaking.lose("put", loss)
    puts = [world.create("new"), world.change(changed), world.relabel(labelled)]
    assert await breaking.store.put(puts) == [DONE] * 3
    breaking.assert_lost()
    await world.assert_sound(actions=3, stale_rows=1)


@LOSSES
async def test_a_put_of_unknown_outcome_that_conflicts_stays_unknown(
    world: World, breaking: Breaking, loss: Loss
) -> None:
    """The store cannot know whether its first try was done before the action changed."""
    await world.carry_out(world.create("a"))
    puts = [world.create("a"), world.create("b")]
    breaking.lose("put", loss)
    with pytest.raises(OutcomeUnknown):
        await breaking.store.put(puts)
    breaking.assert_lost()
    [conflict, done] = await breaking.store.put(puts)
    assert (conflict.outcome, done) == (PutOutcome.CONFLICT, DONE)
    await world.assert_sound(actions=2)


@LOSSES
async def test_an_advance_is_done_once(world: World, breaking: Breaking, loss: Loss) -> None:
    action, flying = await world.in_flight("flying")
    _, waiting = await world.waiting("waiting")
    [came_in] = await world.carry_out(world.create("came in"))
    row = await world.row_of(came_in.action_id)
    breaking.lose("advance", loss)
    advances = [begin(waiting), finish(flying, action, world.at(900)), begin(row)]
    assert await breaking.store.advance(advances, world.mark()) == [AdvanceOutcome.DONE] * 3
    breaking.assert_lost()
    await world.assert_sound(actions=3)


async def _begin_from_incoming(world: World, name: str) -> Advance:
    await world.carry_out(world.create(name))
    return begin(await world.row_of(name))


async def _begin_in_processing(world: World, name: str) -> Advance:
    return begin((await world.waiting(name))[1])


async def _finish_in_processing(world: World, name: str) -> Advance:
    action, row = await world.in_flight(name)
    return finish(row, action, world.at(900))


# Batches of one kind are written without being judged.
UNIFORM = {
    "begin_from_incoming": _begin_from_incoming,
    "begin_in_processing": _begin_in_processing,
    "finish_in_processing": _finish_in_processing,
}
EACH_KIND = pytest.mark.parametrize("name", UNIFORM)


@LOSSES
@EACH_KIND
async def test_advances_of_one_kind_are_done_once(world: World, breaking: Breaking, loss: Loss, name: str) -> None:
    advances = [await UNIFORM[name](world, action_id) for action_id in "ab"]
    breaking.lose(name, loss)
    assert await breaking.store.advance(advances, world.mark()) == [AdvanceOutcome.DONE] * 2
    breaking.assert_lost()
    await world.assert_sound(actions=2)


@LOSSES
@EACH_KIND
async def test_a_row_in_a_batch_of_one_kind_that_is_gone_after_an_unknown_try_is_unknown(
    world: World, breaking: Breaking, loss: Loss, name: str
) -> None:
    advances = [await UNIFORM[name](world, action_id) for action_id in "ab"]
    await world.advance(advances[0]._replace(to_us=world.at(70)))
    breaking.lose(name, loss)
    assert await breaking.store.advance(advances, world.mark()) == [UNKNOWN, AdvanceOutcome.DONE]
    breaking.assert_lost()
    assert await breaking.store.advance(advances[:1], world.mark()) == [AdvanceOutcome.GONE]
    await world.assert_sound(actions=2)


async def test_a_removal_of_unknown_outcome_stays_unknown(world: World, breaking: Breaking) -> None:
    """Nothing is left that could show who removed it."""
    action, row = await world.waiting("a")
    breaking.lose("advance", Loss.RESPONSE)
    assert await breaking.store.advance([Advance(row, None, action.scheduled_at_us)], world.mark()) == [UNKNOWN]
    breaking.assert_lost()
    await world.assert_sound(actions=0)


async def test_a_row_that_is_gone_after_an_unknown_try_is_unknown(world: World, breaking: Breaking) -> None:
    _, row = await world.waiting("a")
    _, other = await world.waiting("b")
    await world.advance(begin(row))
    breaking.lose("advance", Loss.REQUEST)
    outcomes = await breaking.store.advance([begin(row), begin(other)], world.mark())
    assert outcomes == [UNKNOWN, AdvanceOutcome.DONE]
    breaking.assert_lost()
    assert await breaking.store.advance([begin(row)], world.mark()) == [AdvanceOutcome.GONE]


@LOSSES
async def test_a_migration_is_done_once(world: World, breaking: Breaking, loss: Loss) -> None:
    puts = [world.create("a"), world.create("b")]
    await world.carry_out(*puts)
    breaking.lose("migrate", loss)
    moved = await breaking.store.migrate([incoming_row(put) for put in puts], world.mark())
    breaking.assert_lost()
    assert moved == (2 if loss is Loss.REQUEST else 0)
    await world.assert_sound(actions=2)
    assert (await world.store.stats(world.now_us)).processing_rows == 2


@LOSSES
async def test_a_lock_is_acquired_once(world: World, breaking: Breaking, loss: Loss) -> None:
    breaking.lose("acquire", loss)
    acquired = await breaking.store.acquire("mine", "worker", world.now_us, 0)
    breaking.assert_lost()
    assert acquired is not None
    assert (await world.store.stats(world.now_us)).locked_shards == 1
    assert (await world.store.heartbeat([acquired.lock], world.now_us, 0)).lost == frozenset()


Keep = Callable[[World, PostgresStore, Lock], Awaitable[object]]
KEEPING: dict[str, Keep] = {
    "heartbeat": lambda world, store, lock: store.heartbeat([lock], world.at(9), 0),
    "release": lambda world, store, lock: store.release([lock], world.at(9)),
}


@LOSSES
@pytest.mark.parametrize("name", KEEPING)
async def test_a_lock_is_kept_and_released(world: World, breaking: Breaking, loss: Loss, name: str) -> None:
    acquired = await breaking.store.acquire("mine", "worker", world.now_us, 0)
    assert acquired is not None
    breaking.lose(name, loss)
    await KEEPING[name](world, breaking.store, acquired.lock)
    breaking.assert_lost()
    lock = (await world.store.locks())[acquired.lock.shard_id]
    assert (lock.heartbeat_at_us, lock.locked) == (world.at(9), name == "heartbeat")


Read = Callable[[World, Store], Awaitable[object]]
READS: dict[str, Read] = {
    "get": lambda _world, store: store.get(["a"]),
    "list_actions": lambda _world, store: store.list_actions(None, 10),
    "due": lambda world, store: store.due(
        0, incoming_from_us=0, incoming_limit=10, from_us=0, until_us=world.at(9), limit=10
    ),
    "stale_page": lambda _world, store: store.stale(0, None, 0, 10),
    "locks": lambda _world, store: store.locks(),
    "stats": lambda world, store: store.stats(world.now_us),
    "audit_counts": lambda _world, store: store.audit(10),
}


@LOSSES
@pytest.mark.parametrize("name", READS)
async def test_a_read_is_repeated(world: World, breaking: Breaking, loss: Loss, name: str) -> None:
    await world.waiting("a")
    expected = await READS[name](world, world.store)
    breaking.lose(name, loss)
    assert await READS[name](world, breaking.store) == expected
    breaking.assert_lost()


async def test_calls_succeed_though_all_connections_break_at_once(
    world: World, wired: PostgresStore, wire: Wire
) -> None:
    names = [f"a{n}" for n in range(40)]

    async def cut() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            wire.cut()

    puts = [wired.put([world.create(name)]) for name in names]
    results = await asyncio.gather(*puts, cut())
    assert results[:-1] == [[DONE]] * 40
    await world.assert_sound(actions=40)
