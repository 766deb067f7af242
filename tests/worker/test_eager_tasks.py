"""Attempts that do not wait share a task, and nobody can tell; whatever waits has a task of its own."""

import asyncio
from contextvars import ContextVar

from clepsydra.core.times import SECOND_US, duration
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import RetryPolicy
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

ONCE = RetryPolicy(max_attempts=1)
COUNT = 50

seen_by: ContextVar[str] = ContextVar("seen_by", default="nobody")


async def fleet_with(count: int = COUNT) -> Fleet:
    """Actions that come due together."""
    fleet = Fleet(shards=1)
    for n in range(count):
        limit = duration((2 if n % 2 else 3600) * SECOND_US)
        await fleet.create(f"a{n}", handler="one", retry=ONCE, delay_us=SECOND_US, attempt_timeout=limit)
    return fleet


@on_virtual_time
async def test_attempts_that_do_not_wait_share_a_task() -> None:
    fleet = await fleet_with()
    tasks: set[object] = set()

    @fleet.registry.handler("one")
    async def one() -> None:
        tasks.add(asyncio.current_task())

    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded == COUNT)
    assert len(tasks) == 1
    await fleet.assert_sound()


@on_virtual_time
async def test_what_waits_is_alone_in_its_task_and_keeps_nobody_waiting() -> None:
    fleet = await fleet_with()
    tasks: set[object] = set()
    all_wait = asyncio.Event()

    @fleet.registry.handler("one")
    async def one(context: Context) -> None:
        tasks.add(asyncio.current_task())
        if len(tasks) == COUNT:
            all_wait.set()
        await all_wait.wait()

    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded == COUNT)
    assert len(tasks) == COUNT
    await fleet.assert_sound()


@on_virtual_time
async def test_what_one_sets_in_a_context_variable_the_others_do_not_see() -> None:
    fleet = await fleet_with()
    before: list[str] = []
    after: dict[str, str] = {}

    @fleet.registry.handler("one")
    async def one(context: Context) -> None:
        before.append(seen_by.get())
        seen_by.set(context.action_id)
        if context.action_id in ("a7", "a20"):
            await asyncio.sleep(1)
        after[context.action_id] = seen_by.get()

    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded == COUNT)
    assert before == ["nobody"] * COUNT
    assert after == {f"a{n}": f"a{n}" for n in range(COUNT)}


@on_virtual_time
async def test_each_is_cut_short_at_its_own_timeout() -> None:
    fleet = await fleet_with()
    cancelled: set[str] = set()

    @fleet.registry.handler("one")
    async def one(context: Context) -> None:
        try:
            if context.action_id != "a0":
                await asyncio.sleep(10)
        except asyncio.CancelledError:
            cancelled.add(context.action_id)
            raise

    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded + worker.tally.failed == COUNT)
    assert cancelled == {f"a{n}" for n in range(COUNT) if n % 2}
    assert (await fleet.status("a1")).last_attempt.outcome == action_pb2.Attempt.TIMEOUT
    await fleet.assert_sound()


@on_virtual_time
async def test_whatever_one_raises_or_does_to_its_task_the_others_are_executed() -> None:
    fleet = await fleet_with()

    @fleet.registry.handler("one")
    async def one(context: Context) -> None:
        if context.action_id == "a3":
            raise SystemExit(1)
        if context.action_id == "a5":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        if context.action_id == "a9":
            await asyncio.sleep(1)

    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded + worker.tally.failed == COUNT)
    assert (worker.tally.succeeded, worker.tally.failed) == (COUNT - 1, 1)
    await fleet.assert_sound()
