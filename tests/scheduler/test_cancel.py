"""A cancellation ends the occurrence that it saw, says what it found, and never touches a later one."""

import asyncio

import pytest

from clepsydra.core.times import HOUR_US, MINUTE_US, SECOND_US, duration, timestamp, us_of
from clepsydra.scheduler.errors import EtagMismatch, InvalidArgument, NotFound, OccurrenceEnded, WrongState
from clepsydra.store.port import AdvanceOutcome
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, LogLine, Periodic, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import (
    CancelActionRequest,
    CancelActionResponse,
    ListActionsRequest,
    PauseActionRequest,
    RunActionRequest,
)
from tests.scheduler.a_worker import AWorker
from tests.scheduler.desk import Desk, Trouble, a_create, story


def now_spec(*, periodic: bool = False) -> Spec:
    spec = Spec(log=LogLine(message="ping"))
    if periodic:
        spec.schedule.periodic.CopyFrom(Periodic(interval=duration(HOUR_US)))
    return spec


def cancel(**fields: object) -> CancelActionRequest:
    return CancelActionRequest(id="a", **fields)  # type: ignore[arg-type]


@story
async def test_an_action_that_waits_is_cancelled_and_kept(desk: Desk) -> None:
    await desk.create()
    response = await desk.scheduler.cancel(cancel())
    assert response.cancelled == CancelActionResponse.WAITING_OCCURRENCE
    status = response.action.status
    assert (status.state, status.reason) == (action_pb2.CANCELLED, "a user cancelled it")
    assert (status.counters.cancelled_occurrences, status.counters.cancelled_attempts) == (1, 0)
    # Kept for its retention after a failure.
    assert us_of(status.scheduled_time) == desk.clock.now_us() + 7 * 24 * HOUR_US
    assert (await desk.get()).status == status
    # And it can be run again.
    assert (await desk.scheduler.run(RunActionRequest(id="a"))).status.state == action_pb2.SCHEDULED


@story
async def test_a_periodic_action_goes_on_to_its_next_occurrence(desk: Desk) -> None:
    start_us = desk.clock.now_us() + MINUTE_US
    spec = now_spec(periodic=True)
    spec.schedule.start_time.CopyFrom(timestamp(start_us))
    await desk.scheduler.create(a_create(spec=spec))
    for skipped in (1, 2):
        status = (await desk.scheduler.cancel(cancel())).action.status
        assert status.state == action_pb2.SCHEDULED
        assert us_of(status.occurrence_time) == us_of(status.scheduled_time) == start_us + skipped * HOUR_US
        assert status.counters.cancelled_occurrences == skipped
        assert status.counters.runs == status.counters.missed_occurrences == 0


@story
async def test_a_running_attempt_is_shown_and_cancelled_and_its_outcome_is_not_accepted(desk: Desk) -> None:
    await desk.scheduler.create(a_create(spec=now_spec()))
    worker = AWorker(desk)
    await worker.begin()
    began_us = desk.clock.now_us()
    for action in (await desk.get(), *(await desk.scheduler.list_actions(ListActionsRequest())).actions):
        assert (action.running.worker, action.running.attempt_number) == ("the-worker", 1)
        assert us_of(action.running.start_time) == began_us
        assert us_of(action.running.lease_end_time) == began_us + 35 * SECOND_US
    response = await desk.scheduler.cancel(cancel())
    assert response.cancelled == CancelActionResponse.RUNNING_ATTEMPT
    assert response.action.status.state == action_pb2.CANCELLED
    assert await worker.succeed() is AdvanceOutcome.STALE
    action = await desk.get()
    assert not action.HasField("running")
    [attempt] = action.status.attempts
    assert (attempt.outcome, attempt.number, attempt.worker) == (Attempt.CANCELLATION, 1, "the-worker")
    assert us_of(attempt.start_time) == began_us
    assert action.status.counters.cancelled_attempts == 1


@story
async def test_an_attempt_that_ended_a_moment_before_keeps_its_outcome(desk: Desk) -> None:
    """It ends between the call's look and its write: of a periodic action, the next occurrence is not touched."""
    for periodic in (False, True):
        await desk.scheduler.create(a_create(spec=now_spec(periodic=periodic)))
        worker = AWorker(desk)
        await worker.begin()
        desk.store.meanwhile.append(worker.succeed)
        with pytest.raises(OccurrenceEnded, match="its outcome is kept"):
            await desk.scheduler.cancel(cancel(request_id="r"))
        status = (await desk.get()).status
        assert status.state == (action_pb2.SCHEDULED if periodic else action_pb2.SUCCEEDED)
        assert (status.counters.succeeded_attempts, status.counters.cancelled_occurrences) == (1, 0)
        assert status.last_attempt.outcome == Attempt.SUCCESS
        await desk.delete()


@story
async def test_two_cancellations_at_once_end_one_occurrence(desk: Desk) -> None:
    """They are written together. The second is planned on what the first writes, but it saw what the first saw."""
    await desk.scheduler.create(a_create(spec=now_spec(periodic=True)))
    await AWorker(desk).begin()
    both = await asyncio.gather(*(desk.scheduler.cancel(cancel()) for _ in range(2)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in both) == ["CancelActionResponse", "OccurrenceEnded"]
    assert (await desk.get()).status.counters.cancelled_occurrences == 1


@story
async def test_a_cancellation_of_an_occurrence_by_name(desk: Desk) -> None:
    await desk.scheduler.create(a_create(spec=now_spec(periodic=True)))
    first = (await desk.get()).status.occurrence_time
    await desk.scheduler.cancel(cancel(occurrence_time=first))
    # The same call again, without a request id: a later occurrence is not its business.
    with pytest.raises(OccurrenceEnded):
        await desk.scheduler.cancel(cancel(occurrence_time=first))
    assert (await desk.get()).status.counters.cancelled_occurrences == 1


@story
async def test_a_repeated_cancellation_is_recognised(desk: Desk) -> None:
    await desk.scheduler.create(a_create(spec=now_spec(periodic=True)))
    await AWorker(desk).begin()
    first = await desk.scheduler.cancel(cancel(request_id="r"))
    assert first.cancelled == CancelActionResponse.RUNNING_ATTEMPT
    again = await desk.scheduler.cancel(cancel(request_id="r"))
    assert again == first
    # Once the life that it began is over, its identity is all that is left.
    await desk.scheduler.pause(PauseActionRequest(id="a"))
    later = await desk.scheduler.cancel(cancel(request_id="r"))
    assert (later.cancelled, later.action.meta.guid) == (first.cancelled, first.action.meta.guid)
    assert (await desk.get()).status.counters.cancelled_occurrences == 1


@story
async def test_a_cancellation_whose_answer_was_lost_takes_effect_once(desk: Desk) -> None:
    await desk.scheduler.create(a_create(spec=now_spec(periodic=True)))
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)
    response = await desk.scheduler.cancel(cancel())
    assert response.action.status.counters.cancelled_occurrences == 1
    assert (await desk.get()).status == response.action.status


@story
async def test_what_cannot_be_cancelled(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.scheduler.cancel(cancel())
    created = await desk.create()
    with pytest.raises(EtagMismatch):
        await desk.scheduler.cancel(cancel(etag="another"))
    with pytest.raises(InvalidArgument, match="occurrence_time"):
        await desk.scheduler.cancel(cancel(occurrence_time={"seconds": -1}))
    await desk.scheduler.pause(PauseActionRequest(id="a", etag=created.meta.etag))
    with pytest.raises(WrongState, match="is PAUSED and cannot be cancelled"):
        await desk.scheduler.cancel(cancel())
    await desk.delete()
    with pytest.raises(NotFound):
        await desk.scheduler.cancel(cancel())


@story
async def test_an_action_that_is_not_due_needs_no_look_at_the_queues(desk: Desk) -> None:
    await desk.scheduler.create(a_create(spec=Spec(schedule=Schedule(delay=duration(HOUR_US)), log=LogLine())))
    desk.store.rows.clear()
    assert not (await desk.get()).HasField("running")
    assert len((await desk.scheduler.list_actions(ListActionsRequest())).actions) == 1
    desk.store.actions.clear()
