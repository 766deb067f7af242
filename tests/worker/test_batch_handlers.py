"""Attempts that are executed by one call of a handler: each has its own outcome, its own timeout and its own end."""

import asyncio

from clepsydra.core.times import MINUTE_US, SECOND_US, duration
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import RetryPolicy
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

ONCE = RetryPolicy(max_attempts=1)


@on_virtual_time
async def test_what_is_due_together_is_executed_in_few_calls() -> None:
    fleet = Fleet(shards=1)
    calls: list[int] = []

    @fleet.registry.handler("many", batch=40)
    async def many(contexts: list[Context]) -> None:
        calls.append(len(contexts))

    for n in range(100):
        await fleet.create(f"a{n}", handler="many", delay_us=SECOND_US)
    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded == 100)
    assert sorted(calls) == [20, 40, 40]
    await fleet.assert_sound()


@on_virtual_time
async def test_each_has_its_own_outcome() -> None:
    fleet = Fleet(shards=1)

    @fleet.registry.handler("many", batch=10)
    async def many(contexts: list[Context]) -> list[Exception | None]:
        return [ValueError("odd") if context.action_id == "a1" else None for context in contexts]

    for n in range(3):
        await fleet.create(f"a{n}", handler="many", retry=ONCE)
    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded + worker.tally.failed == 3)
    states = [(await fleet.status(f"a{n}")).state for n in range(3)]
    assert states == [action_pb2.SUCCEEDED, action_pb2.FAILED, action_pb2.SUCCEEDED]
    assert (await fleet.status("a1")).last_attempt.error == "ValueError: odd"


@on_virtual_time
async def test_one_that_times_out_or_is_deleted_leaves_and_the_others_go_on() -> None:
    fleet = Fleet(shards=1)
    told: dict[str, bool] = {}

    @fleet.registry.handler("many", batch=10)
    async def many(contexts: list[Context]) -> None:
        await asyncio.sleep(50)
        told.update((context.action_id, context.cancelled) for context in contexts)

    await fleet.create("short", handler="many", retry=ONCE, attempt_timeout=duration(2 * SECOND_US))
    for name in ("deleted", "long"):
        await fleet.create(name, handler="many", retry=ONCE, attempt_timeout=duration(5 * MINUTE_US))
    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.begun == 3)
    await fleet.delete("deleted")
    await fleet.until(lambda: worker.tally.succeeded == 1)
    assert told == {"short": True, "deleted": True, "long": False}
    assert (await fleet.status("short")).last_attempt.outcome == action_pb2.Attempt.TIMEOUT
    assert (await fleet.status("long")).state == action_pb2.SUCCEEDED
    assert (worker.tally.failed, worker.tally.superseded) == (1, 1)
    await fleet.assert_sound()


@on_virtual_time
async def test_when_all_have_left_the_call_is_cancelled() -> None:
    fleet = Fleet(shards=1)
    cancelled = asyncio.Event()

    @fleet.registry.handler("many", batch=10)
    async def many(contexts: list[Context]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            cancelled.set()

    for n in range(2):
        await fleet.create(f"a{n}", handler="many", retry=ONCE, attempt_timeout=duration((2 + n) * SECOND_US))
    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.failed == 2)
    assert cancelled.is_set()
    await worker.stop()
