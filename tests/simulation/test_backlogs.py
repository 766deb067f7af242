"""What seeds of the simulation found: how a worker gets through more than one page of old or coming work.

The runs that found these are seeds of an earlier plan; the scenes are kept here, reduced to what matters.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from clepsydra.core.times import HOUR_US, MINUTE_US, SECOND_US
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Mark, Page, Row
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time


class Counting:
    """Counts the looks at the queues."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def due(self, shard_id: int, **bounds: Any) -> Page:
        self.looks += 1
        return await self._store.due(shard_id, **bounds)


class Slow:
    """Takes its time to let rows through."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        await asyncio.sleep(0.05)
        return await self._store.migrate(rows, mark)


@on_virtual_time
async def test_many_old_pages_are_migrated_in_one_hold_of_their_shard() -> None:
    fleet = Fleet(shards=1)
    for n in range(20):
        await fleet.create(f"a{n}")
        await asyncio.sleep(0.01)
    # Longer than the overlap of reads.
    await asyncio.sleep(60)
    fleet.add_worker(page=2)
    await fleet.until(lambda: len(fleet.started) == 20, 2 * SECOND_US)


@on_virtual_time
async def test_old_rows_wait_for_room_in_the_pool_and_not_for_the_next_hold_of_their_shard() -> None:
    fleet = Fleet(shards=1)

    async def slow(context: Context) -> None:
        await asyncio.sleep(1)

    fleet.handler("slow", slow)
    migrating = fleet.add_worker(attempts=1)
    await fleet.create("first", handler="slow")
    for n in range(10):
        await fleet.create(f"a{n}", handler="slow", delay_us=n + 1)
    await fleet.until(lambda: migrating.tally.migrated == 10)
    migrating.kill()
    await asyncio.sleep(60)
    fleet.add_worker(attempts=1, shard_max_ms=600_000)
    await fleet.until(lambda: len(fleet.starts_of("a9")) == 1, 20 * SECOND_US)


@on_virtual_time
async def test_a_page_full_of_rows_that_lie_ahead_is_not_read_over_and_over() -> None:
    fleet = Fleet(shards=1)
    counting = Counting(fleet.store)
    worker = fleet.add_worker(counting, page=2, horizon_ms=60_000)
    for n in range(5):
        await fleet.create(f"a{n}", delay_us=MINUTE_US // 2)
    await fleet.until(lambda: worker.tally.succeeded == 5, MINUTE_US)
    # At most one look every 20 ms, as at any shard that has work.
    assert counting.looks < 60 * 50


@on_virtual_time
async def test_what_comes_due_soon_is_migrated_before_a_load_of_the_far_future() -> None:
    fleet = Fleet(shards=1)
    for n in range(400):
        await fleet.create(f"far{n}", delay_us=HOUR_US)
    await fleet.create("near", delay_us=SECOND_US)
    worker = fleet.add_worker(Slow(fleet.store), page=2)
    await fleet.until(lambda: len(fleet.starts_of("near")) == 1, 2 * SECOND_US)
    assert worker.tally.migrated < 400
    await fleet.until(lambda: worker.tally.migrated == 401, MINUTE_US)


@on_virtual_time
async def test_what_comes_in_during_a_load_of_the_far_future_is_migrated_before_it_too() -> None:
    fleet = Fleet(shards=1)
    for n in range(400):
        await fleet.create(f"far{n}", delay_us=HOUR_US)
    worker = fleet.add_worker(Slow(fleet.store), page=2)
    await fleet.until(lambda: worker.tally.migrated > 10, SECOND_US)
    await fleet.create("near", delay_us=SECOND_US)
    await fleet.until(lambda: len(fleet.starts_of("near")) == 1, 2 * SECOND_US)
    assert worker.tally.migrated < 400


@on_virtual_time
async def test_a_backlog_of_due_rows_is_not_written_twice_by_early_migration() -> None:
    fleet = Fleet(shards=1)
    for n in range(20):
        await fleet.create(f"a{n}")
    worker = fleet.add_worker(page=2)
    await fleet.until(lambda: len(fleet.started) == 20, 2 * SECOND_US)
    assert worker.tally.migrated == 0
