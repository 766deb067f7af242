"""Nothing that a worker does besides makes an action late: not a look, not a page of garbage, not a heartbeat."""

import asyncio
from typing import Any

from clepsydra.core.times import HOUR_US, MILLISECOND_US, SECOND_US, duration
from clepsydra.store.memory import MemoryStore
from clepsydra.v1.action_pb2 import Periodic, Schedule
from tests.worker.fleet import Fleet, on_virtual_time


class Slow:
    """A store some of whose calls have been carried out for a while before the answer comes."""

    def __init__(self, store: MemoryStore, **answers_after_s: float) -> None:
        self._store = store
        self._answers_after_s = answers_after_s
        self.called = dict.fromkeys(answers_after_s, 0)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if name not in self._answers_after_s:
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.called[name] += 1
            answer = await value(*args, **kwargs)
            await asyncio.sleep(self._answers_after_s[name])
            return answer

        return call


async def _most_late_us(call: str) -> int:
    """By how much actions are late at most where one kind of call, and no other, is slow."""
    fleet = Fleet()
    store = Slow(fleet.store, **{call: 0.4})
    fleet.add_worker(store, shard_max_ms=3_600_000, collect_pass_ms=1_000)
    await fleet.create("far away", delay_us=HOUR_US)
    await asyncio.sleep(10)
    first_us = fleet.clock.now_us() + 3 * SECOND_US
    starts_us = {str(n): first_us + n * 50 * MILLISECOND_US for n in range(200)}
    for action_id, start_us in starts_us.items():
        await fleet.create(action_id, delay_us=start_us - fleet.clock.now_us())
    await fleet.until(lambda: len(fleet.started) == len(starts_us))
    late_us = [fleet.starts_of(action_id)[0] - start_us for action_id, start_us in starts_us.items()]
    assert store.called[call] > 0
    assert min(late_us) >= 0
    return max(late_us)


@on_virtual_time
async def test_a_heartbeat_that_is_long_on_disk_does_not_put_the_clock_back() -> None:
    # By so much the clocks of worker and store may have run apart since the store was last asked for its time.
    assert await _most_late_us("heartbeat") < 2 * MILLISECOND_US


@on_virtual_time
async def test_what_comes_due_does_not_wait_while_old_rows_are_looked_for() -> None:
    assert await _most_late_us("stale") < 2 * MILLISECOND_US


@on_virtual_time
async def test_a_shard_whose_rows_are_in_memory_is_not_looked_at_again_and_again() -> None:
    fleet = Fleet(shards=1)
    store = Slow(fleet.store, due=0.001)
    fleet.add_worker(store)
    for n in range(1000):
        await fleet.create(str(n), delay_us=2 * SECOND_US + n * 10 * MILLISECOND_US)
    await asyncio.sleep(2)
    before = store.called["due"]
    await asyncio.sleep(10)
    assert len(fleet.started) >= 999
    # Once a second or a little oftener: the horizon moves on.
    assert store.called["due"] - before < 20


@on_virtual_time
async def test_what_comes_due_soon_after_it_was_written_is_read_before_its_time() -> None:
    fleet = Fleet(shards=1)
    store = Slow(fleet.store, due=0.030, advance=0.005)
    fleet.add_worker(store)
    often = Schedule(periodic=Periodic(interval=duration(200 * MILLISECOND_US), max_runs=20))
    created = await fleet.create("a", delay_us=SECOND_US, schedule=often)
    await fleet.until(lambda: len(fleet.started) == 20)
    first_us = created.scheduled_at_us
    late_us = [at_us - first_us - n * 200 * MILLISECOND_US for n, at_us in enumerate(fleet.starts_of("a"))]
    # The time of a begin, and not that of a look besides.
    assert set(late_us[1:]) == {5 * MILLISECOND_US}
