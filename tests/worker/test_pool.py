"""What a worker has in flight is bounded: attempts that run, and outcomes that a slow store has not written yet."""

import asyncio
from collections.abc import Sequence

from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Advance, AdvanceOutcome, Mark
from clepsydra.v1.action_pb2 import RetryPolicy
from tests.worker.fleet import Fleet, on_virtual_time

PLACES = 5
ACTIONS = 40


class SlowToFinish(MemoryStore):
    """Begins at once, and writes outcomes only when it is let."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet.store.shards, fleet.clock)
        self.may_finish = asyncio.Event()

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if advances[0].status is not None:
            await self.may_finish.wait()
        return await super().advance(advances, mark)


@on_virtual_time
async def test_no_more_attempts_run_than_there_are_places() -> None:
    fleet = Fleet(shards=2)
    running = most = 0

    @fleet.registry.handler("slow")
    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    for n in range(ACTIONS):
        await fleet.create(f"a{n}", handler="slow")
    worker = fleet.add_worker(attempts=PLACES)
    await fleet.until(lambda: worker.tally.succeeded == ACTIONS)
    assert most == PLACES
    await fleet.assert_sound()


@on_virtual_time
async def test_outcomes_that_are_not_written_have_as_many_places_and_then_keep_attempts_from_starting() -> None:
    fleet = Fleet(shards=2)
    fleet.store = store = SlowToFinish(fleet)
    for n in range(ACTIONS):
        await fleet.create(f"a{n}")
    worker = fleet.add_worker(attempts=PLACES)
    await fleet.until(lambda: worker.tally.begun == 2 * PLACES)
    await asyncio.sleep(1)
    assert worker.tally.begun == 2 * PLACES
    assert worker.tally.succeeded == 0
    store.may_finish.set()
    await fleet.until(lambda: worker.tally.succeeded == ACTIONS)
    await fleet.assert_sound()


def _cancel_own_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


@on_virtual_time
async def test_a_handler_that_cancels_its_own_task_has_failed_and_gives_its_place_back() -> None:
    fleet = Fleet(shards=1)

    @fleet.registry.handler("cancels-itself")
    async def cancels_itself() -> None:
        _cancel_own_task()
        await asyncio.sleep(1)

    @fleet.registry.handler("cancel-themselves", batch=10)
    async def cancel_themselves(payloads: list[bytes]) -> None:
        _cancel_own_task()
        await asyncio.sleep(1)

    for n in range(3):
        await fleet.create(f"a{n}", handler="cancels-itself", retry=RetryPolicy(max_attempts=1))
        await fleet.create(f"b{n}", handler="cancel-themselves", retry=RetryPolicy(max_attempts=1))
    worker = fleet.add_worker(attempts=2)
    await fleet.until(lambda: worker.tally.failed == 6)
    for n in range(ACTIONS):
        await fleet.create(f"c{n}")
    await fleet.until(lambda: worker.tally.succeeded == ACTIONS)
    await fleet.assert_sound()
