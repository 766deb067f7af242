"""A small installation with something of everything in it, and the same one in the specification beside it."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from clepsydra.core.ids import Ids
from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Advance, Lock, Mark, Put, Queue, Row, Store
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.location import Limits, locate
from tests.conformance.backends import TestClock
from tests.conformance.worlds import EVERYTHING, World, begin, content_of, finish
from tests.ydb_endpoint import Endpoint, Engine, Evaluation
from tests.ydb_endpoint.endpoint import DATABASE

SHARDS = 2
# Nothing ends early, however busy the machine is.
PATIENT = Limits(sessions=8, timeout_s=30.0, retry_s=30.0, connect_s=30.0)
# A slow answer is not waited for. Whatever else is slow then is tried again, which changes no outcome.
BRISK = PATIENT._replace(timeout_s=0.5, scan_timeout_s=0.5)
# A few tries, and no more.
IMPATIENT = PATIENT._replace(retry_s=0.1)

Call = Callable[[Store], Awaitable[Any]]


@asynccontextmanager
async def opened(endpoint: Endpoint, limits: Limits = PATIENT, seed: int = 1) -> AsyncIterator[YdbStore]:
    """A store on the endpoint, installed if it is not there."""
    location = locate(endpoint.url())._replace(limits=limits)
    await YdbStore.install(endpoint.url(), SHARDS, {}, Ids(random.Random(seed)))
    store = await YdbStore.open_at(location, {}, Ids(random.Random(seed)))
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def running(
    *, can_cut: bool = False, evaluation: Evaluation = Evaluation.EITHER, seed: int = 0
) -> AsyncIterator[Endpoint]:
    async with Endpoint(Engine(DATABASE, evaluation=evaluation, seed=seed), can_cut=can_cut) as endpoint:
        yield endpoint


class Scene:
    """What the calls below act on. Everything lies in shard 0 unless it says otherwise."""

    def __init__(self, store: YdbStore, now_us: int) -> None:
        self.store = store
        self.model = MemoryStore(SHARDS, TestClock(now_us))
        self.world = World(store, store, now_us, Ids(random.Random(3)))
        self.actions: dict[str, Action] = {}
        self.rows: dict[str, Row] = {}
        self.lock = Lock(0, "held")

    async def build(self) -> None:
        names = ("came in", "waits", "in flight", "ends", "changed")
        puts = [self.world.create(name, self.world.at(60 + n), shard_id=0) for n, name in enumerate(names)]
        await self.both(lambda store: store.put(puts))
        self.actions = {put.action.action_id: put.action for put in puts}
        entries = (await self.world.page(0)).incoming
        self.rows = {entry.row.action_id: entry.row for entry in entries}
        moving, mark = [self.rows[name] for name in names[1:]], self.world.mark()
        await self.both(lambda store: store.migrate(moving, mark))
        self.rows |= {row.action_id: _migrated(row) for row in moving}
        begun, mark = begin(self.rows["in flight"]), self.world.mark()
        await self.both(lambda store: store.advance([begun], mark))
        self.rows["in flight"] = await self.world.row_of("in flight")
        changed = self.world.change(self.actions["changed"], shard_id=1)
        await self.both(lambda store: store.put([changed]))
        await self.both(lambda store: _acquired(store, "held", self.world.now_us))

    async def both(self, call: Call) -> Any:
        answer = await call(self.store)
        assert await call(self.model) == answer
        return answer

    async def assert_alike(self) -> None:
        """The store holds what the specification holds, and the invariant with it."""
        assert await content_of(self.store) == await content_of(self.model)
        assert await self.store.locks() == await self.model.locks()
        audit = await self.store.audit(EVERYTHING)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)


def _migrated(row: Row) -> Row:
    return row._replace(queue=Queue.PROCESSING, at_us=row.scheduled_at_us)


async def _acquired(store: Store, guid: str, now_us: int) -> Lock | None:
    acquired = await store.acquire(guid, "worker", now_us, 0)
    return acquired and acquired.lock


@asynccontextmanager
async def scene(endpoint: Endpoint, limits: Limits = PATIENT) -> AsyncIterator[Scene]:
    """Built by a patient store, and then seen through one with the given limits."""
    async with opened(endpoint) as builder, opened(endpoint, limits) as store:
        made = Scene(builder, await builder.now())
        await made.build()
        made.store = store
        yield made


# Every call of the port, made once so that it can be repeated as it was, with the texts that it sends.

Make = Callable[[Scene], Call]


def _create(scene: Scene) -> Call:
    put = scene.world.create("new", shard_id=1)
    return lambda store: store.put([put])


def _change(scene: Scene) -> Call:
    put = scene.world.change(scene.actions["waits"], shard_id=1)
    return lambda store: store.put([put])


def _relabel(scene: Scene) -> Call:
    put = scene.world.relabel(scene.actions["in flight"])
    return lambda store: store.put([put])


def _conflict(scene: Scene) -> Call:
    put: Put = scene.world.create("waits", shard_id=1)
    return lambda store: store.put([put])


def _advanced(*advances: Advance, mark: Mark) -> Call:
    return lambda store: store.advance(advances, mark)


def _begin(scene: Scene) -> Call:
    return _advanced(begin(scene.rows["waits"]), mark=scene.world.mark())


def _begin_from_incoming(scene: Scene) -> Call:
    return _advanced(begin(scene.rows["came in"]), mark=scene.world.mark())


def _finish(scene: Scene) -> Call:
    ends = finish(scene.rows["in flight"], scene.actions["in flight"], scene.world.at(900))
    return _advanced(ends, begin(scene.rows["waits"]), mark=scene.world.mark())


def _remove(scene: Scene) -> Call:
    removal = Advance(scene.rows["ends"], None, scene.actions["ends"].scheduled_at_us)
    return _advanced(removal, mark=scene.world.mark())


def _advance_stale(scene: Scene) -> Call:
    return _advanced(begin(scene.rows["changed"]), mark=scene.world.mark())


def _migrate(scene: Scene) -> Call:
    mark = scene.world.mark()
    return lambda store: store.migrate([scene.rows["came in"]], mark)


def _drop(scene: Scene) -> Call:
    return lambda store: store.drop([scene.rows["changed"]])


def _acquire(scene: Scene) -> Call:
    return lambda store: _acquired(store, "wanted", scene.world.now_us)


def _heartbeat(scene: Scene) -> Call:
    async def beat(store: Store) -> Any:
        return (await store.heartbeat([scene.lock, Lock(1, "never")], scene.world.at(5), 0))[:2]

    return beat


def _release(scene: Scene) -> Call:
    return lambda store: store.release([scene.lock], scene.world.at(5))


def _due(scene: Scene) -> Call:
    return lambda store: store.due(
        0, incoming_from_us=0, incoming_limit=50, from_us=0, until_us=END_OF_TIME_US, limit=50
    )


def _soon(scene: Scene) -> Call:
    until_us = scene.world.at(1000)
    return lambda store: store.soon(0, incoming_from_us=0, until_us=until_us, limit=EVERYTHING)


def _list(scene: Scene) -> Call:
    async def listed(store: Store) -> Any:
        # The order is the store's own.
        return sorted(await store.list_actions(None, 50))

    return listed


def _get(scene: Scene) -> Call:
    return lambda store: store.get(["waits", "nothing", "came in"])


def _stale(scene: Scene) -> Call:
    return lambda store: store.stale(0, None, 0, 50)


def _locks(scene: Scene) -> Call:
    return lambda store: store.locks()


def _stats(scene: Scene) -> Call:
    return lambda store: store.stats(scene.world.now_us)


def _audit(scene: Scene) -> Call:
    return lambda store: store.audit(10)


def _now(scene: Scene) -> Call:
    async def told(store: Store) -> Any:
        return await store.now() >= scene.world.now_us

    return told


WRITES: dict[str, tuple[Make, str]] = {
    "create": (_create, "put"),
    "change": (_change, "put"),
    "relabel": (_relabel, "put"),
    "begin": (_begin, "advance_in_processing"),
    "begin from incoming": (_begin_from_incoming, "advance_from_incoming"),
    "finish": (_finish, "advance_in_processing"),
    "remove": (_remove, "advance_in_processing"),
    "advance stale": (_advance_stale, "advance_in_processing"),
    "migrate": (_migrate, "migrate"),
    "drop": (_drop, "drop"),
    "acquire": (_acquire, "acquire"),
    "heartbeat": (_heartbeat, "heartbeat"),
    "release": (_release, "release"),
}
READS: dict[str, tuple[Make, str]] = {
    "get": (_get, "get"),
    "list": (_list, "list_actions"),
    "due": (_due, "due"),
    "soon": (_soon, "soon"),
    "stale": (_stale, "stale"),
    "acquire's look": (_acquire, "free_locks"),
    "heartbeat's look": (_heartbeat, "free_locks"),
    "locks": (_locks, "locks"),
    "stats": (_stats, "stats"),
    "audit's actions": (_audit, "audit_actions"),
    "audit's incoming": (_audit, "audit_incoming"),
    "audit's processing": (_audit, "audit_processing"),
    "now": (_now, "now"),
}
CONFLICT: tuple[Make, str] = (_conflict, "put")
