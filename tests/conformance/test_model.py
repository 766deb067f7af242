"""A walk of random calls, many of them late, repeated or mistaken, finds the store and the specification alike."""

import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from clepsydra.core.ids import Ids
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Advance, Lock, Put, Queue, Row, Store
from tests.conformance.backends import TestClock
from tests.conformance.worlds import EVERYTHING, World, content_of, line_up

NAMES = [f"a{n}" for n in range(12)]
STEPS = 300
# What was seen long ago is worth less than what was seen lately, and memory has an end.
REMEMBERED = 16

Thing = TypeVar("Thing")
Call = Callable[[Store], Awaitable[Any]]


class Walk:
    """Every call goes to both stores. What the answers showed is kept, and used when it is long out of date."""

    def __init__(self, world: World, model: Store, seed: int) -> None:
        self.world = world
        self.model = model
        self.random = random.Random(seed)
        self.actions: list[Action] = []
        self.rows: list[Row] = []
        self.stale_rows: list[Row] = []
        self.locks: list[Lock] = []
        self.calls: list[Call] = []

    async def both(self, call: Call) -> Any:
        answer = await call(self.world.store)
        assert answer == await call(self.model)
        return answer

    async def step(self) -> None:
        writes = [self.put, self.migrate, self.drop, self.advance, self.lock, self.keep_locks]
        kinds = [self.look, self.count, self.replay, *writes]
        [kind] = self.random.choices(kinds, [6, 1, 3, 2, 3, 1, 5, 1, 1])
        await kind()

    def some(self, things: list[Thing], most: int) -> list[Thing]:
        lately = things[-REMEMBERED:]
        return self.random.sample(lately, min(len(lately), self.random.randint(1, most)))

    async def replay(self) -> None:
        for call in self.some(self.calls, 2):
            await self.both(call)

    async def put(self) -> None:
        puts = [self.a_put(name) for name in self.random.sample(NAMES, self.random.randint(1, 4))]
        # A create that is repeated after a removal comes after the longest retry: else a guid would be current twice.
        aged = [put if put.seen else put._replace(created_at_us=self.too_old_us()) for put in puts]
        self.calls.append(lambda store: store.put(aged))
        await self.both(lambda store: store.put(puts))
        self.actions += [action for action in await self.both(lambda store: store.get(NAMES)) if action]

    def a_put(self, name: str) -> Put:
        known = [action for action in self.actions[-REMEMBERED:] if action.action_id == name]
        seen = known[-1] if known and self.random.random() < 0.7 else self.random.choice([None, *known])
        shard_id = self.random.randrange(self.model.shards)
        if seen is None:
            put = self.world.create(name, self.world.tick(), shard_id=shard_id)
        elif self.random.random() < 0.3:
            put = self.world.change_settings(seen)
        else:
            put = self.world.change(seen, self.world.tick(), shard_id=shard_id)
        return put._replace(created_at_us=self.too_old_us()) if self.random.random() < 0.05 else put

    def too_old_us(self) -> int:
        return self.world.now_us - 10 * CALL_RETRY_US

    async def look(self) -> None:
        shard_id, limit = self.random.randrange(self.model.shards), self.random.choice([2, EVERYTHING])
        from_us, until_us = sorted(self.world.now_us + self.random.choice([0, 300, 600, 2000]) for _ in range(2))

        after = self.random.choice([("", ""), ("b", "")])

        async def due(store: Store) -> Any:
            page = await store.due(
                shard_id,
                incoming_from_us=from_us,
                incoming_limit=limit,
                from_us=self.world.now_us,
                until_us=until_us,
                limit=limit,
                after=after,
            )
            return [*page.incoming, *page.due]

        async def stale(store: Store) -> Any:
            page = await store.stale(shard_id, None, from_us, limit)
            return list(page.stale), page.next_after, page.seen

        for row, action in await self.both(due):
            if action is None:
                self.stale_rows.append(row)
            else:
                self.rows.append(row)
                self.actions.append(action)
        self.stale_rows += (await self.both(stale))[0]

    async def migrate(self) -> None:
        rows = [row for row in self.some(self.rows, 5) if row.queue is Queue.INCOMING]
        mark = self.world.mark()
        await self.record(lambda store: store.migrate(rows, mark))

    async def drop(self) -> None:
        stale = self.some(self.stale_rows, 2)
        await self.record(lambda store: store.drop(stale))

    async def advance(self) -> None:
        rows = {row.action_id: row for row in (*self.some(self.stale_rows, 1), *self.some(self.rows, 4))}
        advances, mark = [self.an_advance(row) for row in rows.values()], self.world.mark()
        await self.record(lambda store: store.advance(advances, mark))

    def an_advance(self, row: Row) -> Advance:
        lives = [action for action in self.actions if action.guid == row.guid]
        seen = lives[-1] if lives and self.random.random() < 0.8 else self.random.choice(self.actions)
        to_us = self.world.tick()
        kinds = [
            Advance(row, to_us),
            Advance(row, to_us, seen.scheduled_at_us),
            Advance(row, to_us, seen.scheduled_at_us, self.random.randbytes(8), to_us),
            Advance(row, to_us, seen.scheduled_at_us, self.random.randbytes(8), self.world.tick()),
            Advance(row, None, seen.scheduled_at_us),
        ]
        return self.random.choices(kinds, [4, 3, 3, 3, 2])[0]

    async def lock(self) -> None:
        guid, now_us = f"lock {self.random.randrange(100)}", self.world.tick()
        stale_before_us = now_us - self.random.randrange(1000)

        async def acquire(store: Store) -> Lock | None:
            acquired = await store.acquire(guid, "worker", now_us, stale_before_us)
            return acquired and acquired.lock

        if lock := await self.both(acquire):
            self.locks.append(lock)

    async def keep_locks(self) -> None:
        locks = list({lock.shard_id: lock for lock in self.some(self.locks, 3)}.values())
        now_us = self.world.tick() - self.random.randrange(1000)

        async def heartbeat(store: Store) -> tuple[frozenset[int], int]:
            return (await store.heartbeat(locks, now_us, now_us - 500))[:2]

        await self.record(self.random.choice([heartbeat, lambda store: store.release(locks, now_us)]))

    async def count(self) -> None:
        now_us = self.world.tick()
        await self.both(lambda store: store.locks())
        await self.both(lambda store: store.stats(now_us))
        audit = await self.both(lambda store: store.audit(EVERYTHING))
        assert (audit.live_rows, audit.without_row, audit.with_several_rows) == (audit.actions, 0, 0)

    async def record(self, call: Call) -> None:
        await self.both(call)
        self.calls.append(call)


@pytest.mark.parametrize("seed", range(6))
async def test_the_store_does_what_the_specification_does(world: World, seed: int) -> None:
    model = MemoryStore(world.store.shards, TestClock(world.now_us))
    for store in (world.store, model):
        await line_up(store, world.now_us, Ids(random.Random(seed)))
    walk = Walk(world, model, seed)
    for _ in range(STEPS):
        await walk.step()
    await walk.count()
    assert await world.content() == await content_of(model)
