"""A small installation with rows in every state, and the same rows in the memory store, which is the specification."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from clepsydra.core.ids import Ids
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Lock, Queue, Row, Store
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.url import Limits, parse_url
from tests.conformance.backends import TestClock
from tests.conformance.worlds import EVERYTHING, World, begin, content_of
from tests.ydb_endpoint import Endpoint, Engine, Evaluation
from tests.ydb_endpoint.endpoint import DATABASE

SHARDS = 2
# No limit is reached, however busy the machine is.
LONG_LIMITS = Limits(sessions=8, timeout_s=30.0, retry_s=30.0, connect_s=30.0)
# A slow response times out. Other requests may time out too; they are tried again, which changes no outcome.
SHORT_TIMEOUT = LONG_LIMITS._replace(timeout_s=0.5, scan_timeout_s=0.5)
# Only a few tries.
SHORT_RETRY = LONG_LIMITS._replace(retry_s=0.1)

Call = Callable[[Store], Awaitable[Any]]


@asynccontextmanager
async def open_store(endpoint: Endpoint, limits: Limits = LONG_LIMITS, seed: int = 1) -> AsyncIterator[YdbStore]:
    """A store on the endpoint, which is installed if it does not exist."""
    location = parse_url(endpoint.url())._replace(limits=limits)
    await YdbStore.install(endpoint.url(), SHARDS, {}, Ids(random.Random(seed)))
    store = await YdbStore.open_at(location, {}, Ids(random.Random(seed)))
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def running_endpoint(
    *, can_cut: bool = False, evaluation: Evaluation = Evaluation.MIXED, seed: int = 0
) -> AsyncIterator[Endpoint]:
    async with Endpoint(Engine(DATABASE, evaluation=evaluation, seed=seed), can_cut=can_cut) as endpoint:
        yield endpoint


class SampleInstallation:
    """Actions and rows for the calls of `port_calls`. Everything is in shard 0, except the new life of "changed"."""

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
        await self.call_both(lambda store: store.put(puts))
        self.actions = {put.action.action_id: put.action for put in puts}
        entries = (await self.world.page(0)).incoming
        self.rows = {entry.row.action_id: entry.row for entry in entries}
        moving, mark = [self.rows[name] for name in names[1:]], self.world.mark()
        await self.call_both(lambda store: store.migrate(moving, mark))
        self.rows |= {row.action_id: _migrated(row) for row in moving}
        begun, mark = begin(self.rows["in flight"]), self.world.mark()
        await self.call_both(lambda store: store.advance([begun], mark))
        self.rows["in flight"] = await self.world.row_of("in flight")
        changed = self.world.change(self.actions["changed"], shard_id=1)
        await self.call_both(lambda store: store.put([changed]))
        await self.call_both(lambda store: acquire_lock(store, "held", self.world.now_us))

    async def call_both(self, call: Call) -> Any:
        """Make a call on the store and on the model, which must return the same."""
        result = await call(self.store)
        assert await call(self.model) == result
        return result

    async def check_equal(self) -> None:
        """The store has the same content as the model, and the invariant holds."""
        assert await content_of(self.store) == await content_of(self.model)
        assert await self.store.locks() == await self.model.locks()
        await self.check_invariant()

    async def check_invariant(self) -> None:
        audit = await self.store.audit(EVERYTHING)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)


def _migrated(row: Row) -> Row:
    return row._replace(queue=Queue.PROCESSING, at_us=row.scheduled_at_us)


async def acquire_lock(store: Store, guid: str, now_us: int) -> Lock | None:
    acquired = await store.acquire(guid, "worker", now_us, 0)
    return acquired and acquired.lock


@asynccontextmanager
async def sample_installation(endpoint: Endpoint, limits: Limits = LONG_LIMITS) -> AsyncIterator[SampleInstallation]:
    """Built through a store with long limits, and then used through one with the given limits."""
    async with open_store(endpoint) as builder, open_store(endpoint, limits) as store:
        sample = SampleInstallation(builder, await builder.now())
        await sample.build()
        sample.store = store
        yield sample
