"""A store whose responses come seconds late: delays, retries and intervals may end late by true time, never early."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clepsydra.core.clock import DisciplinedClock
from clepsydra.core.times import MINUTE_US, SECOND_US, duration
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.port import Store
from clepsydra.store.store_clock import read_store_clock
from clepsydra.v1.action_pb2 import Meta, Periodic, PythonHandler, RetryPolicy, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

LATE_S = 3
DELAY_US = 4 * SECOND_US


class LateAnswers:
    """A line to a store that holds back the answers that tell the store's time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        return _late(value) if name in ("now", "acquire", "heartbeat") else value


def _late(call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def answered_late(*args: Any) -> Any:
        answer = await call(*args)
        await asyncio.sleep(LATE_S)
        return answer

    return answered_late


@on_virtual_time
async def test_a_delay_counts_from_no_earlier_than_the_call() -> None:
    fleet = Fleet()
    fleet.add_worker()
    clock = DisciplinedClock(fleet.clock)
    await read_store_clock(LateAnswers(fleet.store), clock)
    scheduler = Scheduler(fleet.store, clock, fleet.ids, SchedulerSettings())

    called_us = fleet.clock.now_us()
    schedule = Schedule(delay=duration(DELAY_US))
    action = ScheduledAction(meta=Meta(id="a"), spec=Spec(schedule=schedule, handler=PythonHandler(name="noop")))
    await scheduler.create(CreateActionRequest(action=action))

    await fleet.until(lambda: len(fleet.started) == 1)
    assert DELAY_US <= fleet.starts_of("a")[0] - called_us <= DELAY_US + LATE_S * SECOND_US + SECOND_US


@pytest.mark.parametrize("kind", ["retry", "interval"])
def test_what_a_worker_plans_counts_from_no_earlier_than_the_end_of_the_attempt(kind: str) -> None:
    """The first attempt runs on a worker that hears late from the store, the next one on another that does not."""

    @on_virtual_time
    async def tell() -> None:
        fleet = Fleet()
        late = fleet.add_worker(LateAnswers(fleet.store))

        async def fails_first(context: Context) -> None:
            if kind == "retry" and len(fleet.started) == 1:
                raise ValueError("not today")

        fleet.handler("target", fails_first)
        await fleet.create(
            "a",
            handler="target",
            schedule=Schedule(periodic=Periodic(interval=duration(DELAY_US), mode=Periodic.DRIFT)),
            retry=RetryPolicy(
                first_delay=duration(DELAY_US), max_delay=duration(MINUTE_US), multiplier=1, jitter=0, max_attempts=5
            ),
        )
        await fleet.until(lambda: late.tally.succeeded + late.tally.failed == 1)
        late.kill()
        fleet.add_worker()

        await fleet.until(lambda: len(fleet.started) == 2)
        first_us, second_us = fleet.starts_of("a")
        assert second_us - first_us >= DELAY_US

    tell()
