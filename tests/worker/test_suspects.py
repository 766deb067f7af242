"""One action kills its workers, among many that do not: it is parked, and no innocent action is given up."""

import asyncio

import pytest

from clepsydra.core.times import HOUR_US, MINUTE_US, SECOND_US, duration
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Periodic, Schedule
from clepsydra.worker.running import Context
from clepsydra.worker.settings import WorkerSettings
from tests.simulation import loop as virtual
from tests.worker.fleet import Fleet, on_virtual_time

INNOCENT = 60
WORKERS = 3
RETRIED_WITHIN_US = WorkerSettings().lease_us + WorkerSettings().grace_us + 2 * SECOND_US


class Supervised(Fleet):
    """Workers that die are replaced."""

    def __init__(self, shards: int = 8) -> None:
        super().__init__(shards)
        self.deaths: list[str] = []
        # How many suspects ran alone at once in a worker, at most.
        self._alone: dict[str, int] = {}
        self.most_alone = 0
        self.handler("ends-the-process", self._end_the_process)
        self.handler("innocent", self._work)

    async def _end_the_process(self, context: Context) -> None:
        self.deaths.append(context.action_id)
        self.die(context.worker)
        await asyncio.get_running_loop().create_future()

    def die(self, worker: str) -> None:
        [victim] = [member for n, member in enumerate(self.members) if f"worker-{n}" == worker]
        if not victim.is_dead:
            victim.kill()
            self.add_worker()

    async def _work(self, context: Context) -> None:
        running = await self._is_alone(context)
        if running:
            self._alone[context.worker] = self._alone.get(context.worker, 0) + 1
            self.most_alone = max(self.most_alone, self._alone[context.worker])
        await asyncio.sleep(0.3)
        if running:
            self._alone[context.worker] -= 1

    async def _is_alone(self, context: Context) -> bool:
        status = await self.status(context.action_id)
        return status.occurrence.lone_attempt == context.attempt_number


def periodic(interval_us: int) -> Schedule:
    return Schedule(periodic=Periodic(interval=duration(interval_us), mode=Periodic.FIXED_RATE))


@pytest.mark.parametrize("recurrence", [Schedule(), periodic(HOUR_US)], ids=["once", "periodic"])
def test_a_culprit_is_parked_after_three_deaths_and_every_innocent_action_succeeds(recurrence: Schedule) -> None:
    virtual.run(_culprit_among_innocent_actions(recurrence))


async def _culprit_among_innocent_actions(recurrence: Schedule) -> None:
    fleet = Supervised()
    for n in range(INNOCENT):
        await fleet.create(f"innocent-{n}", handler="innocent", interruption_limit=3)
    await fleet.create("culprit", handler="ends-the-process", interruption_limit=3, schedule=recurrence)
    for _ in range(WORKERS):
        fleet.add_worker()
    await fleet.until(lambda: _succeeded(fleet) == INNOCENT and len(fleet.deaths) == 3, within_us=60 * MINUTE_US)
    await asyncio.sleep(60)

    status = await fleet.status("culprit")
    assert status.state == action_pb2.PAUSED
    assert status.reason.startswith('parked: the worker died 3 times in a row while it ran handler "ends-the-process"')
    assert fleet.deaths == ["culprit"] * 3
    for n in range(INNOCENT):
        assert (await fleet.status(f"innocent-{n}")).state == action_pb2.SUCCEEDED
    assert fleet.most_alone <= 1
    assert sum(member.tally.parked for member in fleet.members) == 1
    await fleet.assert_sound()


@on_virtual_time
async def test_all_that_a_dead_worker_had_in_hand_is_begun_again_at_once_the_first_time() -> None:
    fleet = Supervised()

    async def long(context: Context) -> None:
        await asyncio.sleep(600)

    fleet.handler("long", long)
    for n in range(500):
        await fleet.create(f"a{n}", handler="long", attempt_timeout=duration(HOUR_US), interruption_limit=3)
    fleet.add_worker()
    await fleet.until(lambda: len(fleet.started) == 500)
    died_us = fleet.clock.now_us()
    fleet.die("worker-0")
    await fleet.until(lambda: len(fleet.started) == 1000)
    assert fleet.clock.now_us() - died_us <= RETRIED_WITHIN_US
    assert {number for _, number, _ in fleet.started[500:]} == {2}


@on_virtual_time
async def test_suspects_run_one_at_a_time_and_others_go_on_beside_them() -> None:
    fleet = Supervised(shards=2)
    for n in range(20):
        await fleet.create(f"innocent-{n}", handler="innocent", interruption_limit=3)
    fleet.add_worker()
    for _ in range(2):
        started = len(fleet.started)
        await fleet.until(lambda started=started: len(fleet.started) == started + 20)  # type: ignore[misc]
        fleet.die(f"worker-{len(fleet.members) - 1}")
    # Now all of them are suspects.
    fleet.add_worker()
    await fleet.until(lambda: len(fleet.started) > 40)
    for n in range(100):
        await fleet.create(f"other-{n}")
    await fleet.until(lambda: _succeeded(fleet) >= 100, within_us=2 * SECOND_US)
    await fleet.until(lambda: _succeeded(fleet) == 120)
    assert fleet.most_alone == 1
    assert len(fleet.started) == 40 + 20 + 100
    await fleet.assert_sound()


def _succeeded(fleet: Fleet) -> int:
    return sum(member.tally.succeeded for member in fleet.members)
