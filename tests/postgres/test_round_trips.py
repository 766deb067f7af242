"""Every call of schedulers and workers is one round trip, once its statement is prepared in the session."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.port import Lock, Mark
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import World, begin, finish
from tests.postgres.installations import Installation
from tests.postgres.wire import Wire

Call = Callable[[PostgresStore], Awaitable[object]]


@pytest.fixture
async def single(installation: Installation, wire: Wire) -> AsyncIterator[PostgresStore]:
    """A store with one connection, in which every statement is prepared after its first call."""
    opened = await PostgresStore.open(f"{installation.through(wire.url)}&pool_size=1", SystemClock())
    yield opened
    await opened.close()


async def calls_of_each_kind(world: World, tag: str) -> dict[str, Call]:
    """Each with a batch of every kind of outcome."""
    _, waiting = await world.waiting(f"{tag} waits")
    flies, flying = await world.in_flight(f"{tag} flies")
    old, stale = await world.waiting(f"{tag} old")
    await world.carry_out(world.change(old))
    [changed, labelled] = await world.carry_out(world.create(f"{tag} changed"), world.create(f"{tag} labelled"))
    puts = [world.create(f"{tag} new"), world.change(changed), world.relabel(labelled), world.create(f"{tag} waits")]
    gone = flying._replace(at_us=1, action_id="nobody")
    advances = [begin(waiting), finish(flying, flies, world.at(900)), begin(stale), begin(gone)]
    incoming = await world.row_of(f"{tag} labelled")
    locks = [Lock(0, f"{tag} lock")]
    return {
        "put": lambda store: store.put(puts),
        "get": lambda store: store.get([f"{tag} waits", "nobody"]),
        "list": lambda store: store.list_actions(None, 3),
        "acquire": lambda store: store.acquire(f"{tag} lock", "worker", world.now_us, 0),
        "heartbeat": lambda store: store.heartbeat(locks, world.now_us, 0),
        "release": lambda store: store.release(locks, world.now_us),
        "due": lambda store: store.due(
            0, incoming_from_us=0, incoming_limit=9, from_us=0, until_us=world.at(99), limit=9
        ),
        "migrate": lambda store: store.migrate([incoming], Mark(f"{tag} sync", 1)),
        "drop": lambda store: store.drop([stale]),
        "advance": lambda store: store.advance(advances, Mark(f"{tag} sync", 2)),
        "stale": lambda store: store.stale(0, None, 0, 9),
        "now": lambda store: store.now(),
    }


async def test_every_hot_call_is_one_round_trip(world: World, single: PostgresStore, wire: Wire) -> None:
    for call in (await calls_of_each_kind(world, "first")).values():
        await call(single)
    # The notification of the put above uses the same connection.
    assert await single.now() > 0
    counted = {}
    for name, call in (await calls_of_each_kind(world, "second")).items():
        if name == "put":
            continue
        before = wire.round_trips
        await call(single)
        counted[name] = wire.round_trips - before
    assert counted == dict.fromkeys(counted, 1)


async def test_a_put_is_one_round_trip_and_its_notification_another(
    world: World, single: PostgresStore, wire: Wire
) -> None:
    for tag in ("first", "second"):
        before = wire.round_trips
        await single.put([world.create(f"{tag} a"), world.create(f"{tag} b", shard_id=1)])
        at_answer = wire.round_trips - before
    assert at_answer == 1


async def test_the_first_call_of_a_kind_prepares_its_statement_and_nothing_else(
    world: World, single: PostgresStore, wire: Wire
) -> None:
    assert await single.now() > 0
    counted = {}
    for name, call in (await calls_of_each_kind(world, "first")).items():
        if name == "put":
            continue
        before = wire.round_trips
        await call(single)
        counted[name] = wire.round_trips - before
    assert counted.pop("now") == 1
    assert counted == dict.fromkeys(counted, 2)
