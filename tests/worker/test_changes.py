"""Changes by users while an attempt runs, through a real scheduler: what is accepted, and what targets receive."""

import asyncio

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core.times import HOUR_US, SECOND_US, duration
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.repair import repair
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, Periodic, PythonHandler, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    CreateActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time


class Target:
    """A handler whose first call takes ten seconds; it writes down the key and the number of each."""

    def __init__(self, fleet: Fleet) -> None:
        self.calls: list[tuple[str, int]] = []
        for name in ("target", "another"):
            fleet.handler(name, self._called)

    async def _called(self, context: Context) -> None:
        self.calls.append((context.idempotency_key, context.attempt_number))
        await asyncio.sleep(10 if len(self.calls) == 1 else 0)


async def a_running_action(fleet: Fleet, spec: Spec | None = None) -> tuple[Scheduler, Target]:
    target, scheduler = Target(fleet), Scheduler(fleet.store, fleet.clock, fleet.ids, SchedulerSettings())
    given = Spec(handler=PythonHandler(name="target"))
    given.MergeFrom(spec or Spec())
    await scheduler.create(CreateActionRequest(action=ScheduledAction(meta=Meta(id="a"), spec=given)))
    await fleet.until(lambda: len(target.calls) == 1)
    return scheduler, target


async def update(scheduler: Scheduler, path: str, spec: Spec) -> ScheduledAction:
    action = ScheduledAction(meta=Meta(id="a"), spec=spec)
    return await scheduler.update(UpdateActionRequest(action=action, update_mask=FieldMask(paths=[path])))


@on_virtual_time
async def test_an_attempt_that_runs_during_a_harmless_update_is_accepted_and_its_settings_stay() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    scheduler, target = await a_running_action(fleet, Spec(retention={"after_success": duration(20 * SECOND_US)}))

    await update(scheduler, "spec.retention.after_success", Spec(retention={"after_success": duration(60 * SECOND_US)}))

    await fleet.until(lambda: worker.tally.succeeded == 1)
    assert (len(target.calls), worker.tally.superseded) == (1, 0)
    # It ended by the retention that it began with; at its purge the new one is seen.
    ended_us = fleet.clock.now_us()
    await fleet.until(lambda: fleet.clock.now_us() > ended_us + 50 * SECOND_US)
    assert (await fleet.status("a")).state == action_pb2.SUCCEEDED
    await fleet.until(lambda: "a" not in fleet.store.actions)
    assert len(target.calls) == 1
    assert not fleet.store.rows


@pytest.mark.parametrize("change", ["pause and resume", "another target", "repair"])
def test_an_attempt_during_a_change_is_repeated_with_the_same_key_and_another_number(change: str) -> None:
    @on_virtual_time
    async def tell() -> None:
        fleet = Fleet()
        worker = fleet.add_worker()
        scheduler, target = await a_running_action(fleet)

        if change == "pause and resume":
            await scheduler.pause(PauseActionRequest(id="a"))
            await scheduler.resume(ResumeActionRequest(id="a"))
        elif change == "another target":
            await update(scheduler, "spec.handler.name", Spec(handler=PythonHandler(name="another")))
        else:
            for key in [key for key in fleet.store.rows if key[3] == "a"]:
                del fleet.store.rows[key]
            async for _ in repair(fleet.store, fleet.ids):
                pass

        await fleet.until(lambda: worker.tally.succeeded == 1)
        await fleet.until(lambda: worker.tally.superseded == 1)
        [(first_key, first), (second_key, second)] = target.calls
        assert (first_key, first, second) == (second_key, 1, 2)
        await fleet.assert_sound()

    tell()


@on_virtual_time
async def test_a_run_that_a_user_asks_for_has_a_key_of_its_own() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    scheduler, target = await a_running_action(fleet)

    await scheduler.run(RunActionRequest(id="a"))

    await fleet.until(lambda: worker.tally.succeeded == 1)
    [(first_key, first), (second_key, second)] = target.calls
    assert first_key != second_key
    assert (first, second) == (1, 1)


@on_virtual_time
async def test_an_update_of_a_drifting_actions_settings_does_not_fire_it() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    schedule = Schedule(periodic=Periodic(interval=duration(HOUR_US), mode=Periodic.DRIFT))
    scheduler, target = await a_running_action(fleet, Spec(schedule=schedule))
    await fleet.until(lambda: worker.tally.succeeded == 1)
    planned = (await fleet.status("a")).scheduled_time

    answer = await update(scheduler, "spec.retry.max_attempts", Spec(retry={"max_attempts": 5}))

    assert answer.plan_effect == ScheduledAction.KEPT
    later_us = fleet.clock.now_us() + 60 * SECOND_US
    await fleet.until(lambda: fleet.clock.now_us() > later_us)
    assert ((await fleet.status("a")).scheduled_time, len(target.calls)) == (planned, 1)
