"""Pause, resume and run."""

from typing import Any

import pytest

from clepsydra.core.times import END_OF_TIME_US, HOUR_US, SECOND_US, duration, timestamp, us_of
from clepsydra.scheduler.errors import EtagMismatch, InvalidArgument, NotFound, WrongState
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import LogLine, Periodic, Retention, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import PauseActionRequest, ResumeActionRequest, RunActionRequest
from tests.scheduler.desk import Desk, a_spec, story


@story
async def test_a_paused_action_has_its_row_at_the_end_of_time(desk: Desk) -> None:
    created = await desk.create("a")

    paused = await desk.scheduler.pause(PauseActionRequest(id="a"))

    assert paused.status.state == action_pb2.PAUSED
    assert paused.meta.guid != created.meta.guid
    assert paused.meta.revision == 2
    assert paused.meta.etag != created.meta.etag
    assert paused.spec == created.spec
    assert desk.live_row_times("a") == [END_OF_TIME_US]
    assert await desk.get("a") == paused


@story
async def test_a_resumed_action_goes_on(desk: Desk) -> None:
    created = await desk.create("a")
    await desk.scheduler.pause(PauseActionRequest(id="a"))

    resumed = await desk.scheduler.resume(ResumeActionRequest(id="a"))

    assert resumed.status.state == action_pb2.SCHEDULED
    assert resumed.status.scheduled_time == created.status.scheduled_time
    assert resumed.meta.revision == 3
    assert desk.live_row_times("a") == [us_of(created.status.scheduled_time)]


@story
async def test_an_action_is_run_now(desk: Desk) -> None:
    await desk.create("a", spec=a_spec(delay_s=3600))

    running = await desk.scheduler.run(RunActionRequest(id="a"))

    assert us_of(running.status.scheduled_time) == desk.clock.now_us()
    assert desk.live_row_times("a") == [desk.clock.now_us()]


@story
async def test_what_has_nothing_left_to_resume_is_left_to_the_workers_to_remove(desk: Desk) -> None:
    """With no retention it is removed at once, and only workers remove."""
    end_us = desk.clock.now_us() + HOUR_US
    spec = Spec(
        schedule=Schedule(periodic=Periodic(interval=duration(SECOND_US), end_time=timestamp(end_us))),
        retention=Retention(after_success=duration(0), after_failure=duration(0)),
        log=LogLine(),
    )
    await desk.create("a", spec=spec)
    await desk.scheduler.pause(PauseActionRequest(id="a"))
    desk.clock.epoch_us += 2 * HOUR_US

    resumed = await desk.scheduler.resume(ResumeActionRequest(id="a"))

    assert resumed.status.state == action_pb2.EXPIRED
    assert desk.live_row_times("a") == [desk.clock.now_us()]
    assert desk.store.actions["a"].scheduled_at_us == us_of(resumed.status.scheduled_time)


@story
async def test_what_makes_no_sense_is_refused_with_the_state(desk: Desk) -> None:
    await desk.create("a")

    with pytest.raises(WrongState, match="'a' is SCHEDULED and cannot be resumed"):
        await desk.scheduler.resume(ResumeActionRequest(id="a"))
    await desk.scheduler.pause(PauseActionRequest(id="a"))
    with pytest.raises(WrongState, match="'a' is PAUSED and cannot be paused"):
        await desk.scheduler.pause(PauseActionRequest(id="a"))
    with pytest.raises(WrongState, match="'a' is PAUSED and cannot be run"):
        await desk.scheduler.run(RunActionRequest(id="a"))


COMMANDS: list[tuple[str, Any]] = [
    ("pause", PauseActionRequest),
    ("resume", ResumeActionRequest),
    ("run", RunActionRequest),
]


@pytest.mark.parametrize(("name", "kind"), COMMANDS)
def test_each_command_has_the_preconditions_of_a_change(name: str, kind: Any) -> None:
    @story
    async def tell(desk: Desk) -> None:
        call = getattr(desk.scheduler, name)
        with pytest.raises(InvalidArgument, match="id: is required"):
            await call(kind())
        with pytest.raises(NotFound):
            await call(kind(id="a"))
        created = await desk.create("a")
        if name == "resume":
            created = await desk.scheduler.pause(PauseActionRequest(id="a"))
        with pytest.raises(EtagMismatch):
            await call(kind(id="a", etag="other"))
        changed = await call(kind(id="a", etag=created.meta.etag))
        assert changed.meta.revision == created.meta.revision + 1
        await desk.delete("a")
        with pytest.raises(NotFound):
            await call(kind(id="a"))

    tell()
