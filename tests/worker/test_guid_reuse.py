"""A guid is never current twice, not even when an action vanishes while calls of its earlier lives may be retried."""

from clepsydra.core.limits import CALL_RETRY_US, DELETED_RETENTION_MIN_US
from clepsydra.core.times import HOUR_US, SECOND_US, duration, timestamp
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.port import Action, Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, PythonHandler, Retention, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    CreateActionRequest,
    GetActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    UpdateActionRequest,
)
from tests.worker.fleet import Fleet, on_virtual_time


def _action(start_us: int) -> ScheduledAction:
    spec = Spec(
        schedule=Schedule(start_time=timestamp(start_us)),
        handler=PythonHandler(name="noop"),
        retention=Retention(after_success=duration(0)),
    )
    return ScheduledAction(meta=Meta(id="a"), spec=spec)


@on_virtual_time
async def test_a_late_retry_of_a_create_finds_a_tombstone_where_its_action_was_changed_and_has_vanished() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    scheduler = Scheduler(fleet.store, fleet.clock, fleet.ids, SchedulerSettings())
    created_us = fleet.clock.now_us()
    await scheduler.create(CreateActionRequest(action=_action(created_us + HOUR_US)))
    [stored] = await fleet.store.get(["a"])
    assert isinstance(stored, Action)
    await fleet.until(lambda: worker.tally.migrated == 1)
    await scheduler.update(UpdateActionRequest(action=_action(fleet.clock.now_us())))
    await fleet.until(lambda: worker.tally.succeeded == 1)

    [retried] = await fleet.store.put([Put(None, stored, 0, created_us)])

    assert retried.current is not None, "nothing stood in the way of the first life's create"
    assert fleet.clock.now_us() < created_us + CALL_RETRY_US
    await fleet.assert_sound()
    await fleet.until(lambda: not fleet.store.actions, DELETED_RETENTION_MIN_US + 5 * SECOND_US)
    assert len(fleet.started) == 1


@on_virtual_time
async def test_an_action_of_one_life_vanishes_at_once() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    scheduler = Scheduler(fleet.store, fleet.clock, fleet.ids, SchedulerSettings())
    await scheduler.create(CreateActionRequest(action=_action(fleet.clock.now_us())))
    await fleet.until(lambda: worker.tally.succeeded == 1)
    assert not fleet.store.actions
    assert not fleet.store.rows


@on_virtual_time
async def test_a_paused_action_that_is_updated_stays_paused() -> None:
    fleet = Fleet()
    fleet.add_worker()
    scheduler = Scheduler(fleet.store, fleet.clock, fleet.ids, SchedulerSettings())
    await scheduler.create(CreateActionRequest(action=_action(fleet.clock.now_us() + HOUR_US)))
    await scheduler.pause(PauseActionRequest(id="a"))
    await scheduler.update(UpdateActionRequest(action=_action(fleet.clock.now_us())))
    paused = await scheduler.get(GetActionRequest(id="a"))
    assert paused.status.state == action_pb2.PAUSED
    await scheduler.resume(ResumeActionRequest(id="a"))
    await fleet.until(lambda: len(fleet.started) == 1)
