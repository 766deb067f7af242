"""What an update does to the plan of an action: only another schedule plans afresh."""

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, SECOND_US, duration, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import (
    LogLine,
    Periodic,
    PythonHandler,
    Retention,
    RetryPolicy,
    Schedule,
    ScheduledAction,
    Spec,
)
from clepsydra.v1.scheduler_pb2 import PauseActionRequest, ResumeActionRequest, UpdateActionRequest
from tests.scheduler.desk import Desk, a_spec, story
from tests.scheduler.test_update import a_worker_succeeds, an_update

KEPT, IN_NEW_LIFE, AFRESH = ScheduledAction.KEPT, ScheduledAction.KEPT_IN_NEW_LIFE, ScheduledAction.PLANNED_AFRESH

HARMLESS = [
    ("spec.retention.after_success", Spec(retention=Retention(after_success=duration(2 * DAY_US)))),
    ("spec.retry", Spec(retry=RetryPolicy(max_attempts=5))),
    ("spec.attempt_timeout", Spec(attempt_timeout=duration(SECOND_US))),
    ("spec.start_deadline", Spec(start_deadline=duration(HOUR_US))),
    ("spec.interruption_limit", Spec(interruption_limit=5)),
    ("spec.log", Spec(log=LogLine(message="ping"))),
    ("meta.labels", Spec()),
]


def periodic(interval_us: int = HOUR_US, **fields: object) -> Schedule:
    return Schedule(periodic=Periodic(interval=duration(interval_us), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "given"), HARMLESS, ids=[path for path, _ in HARMLESS])
@pytest.mark.parametrize("state", [action_pb2.SCHEDULED, action_pb2.SUCCEEDED, action_pb2.PAUSED])
def test_a_change_of_neither_schedule_nor_target_keeps_guid_status_and_row(
    path: str, given: Spec, state: action_pb2.State
) -> None:
    @story
    async def tell(desk: Desk) -> None:
        await desk.create("a", spec=a_spec(delay_s=0))
        if state == action_pb2.SUCCEEDED:
            await a_worker_succeeds(desk)
        elif state == action_pb2.PAUSED:
            await desk.scheduler.pause(PauseActionRequest(id="a"))
        before, rows = await desk.get("a"), dict(desk.store.rows)

        answer = await desk.scheduler.update(an_update(given, path))

        after = await desk.get("a")
        assert (answer.plan_effect, after.plan_effect) == (KEPT, ScheduledAction.PLAN_EFFECT_UNSPECIFIED)
        assert (after.meta.guid, after.status, desk.store.rows) == (before.meta.guid, before.status, rows)
        assert after.meta.revision == before.meta.revision + 1
        assert after.spec == answer.spec

    tell()


@story
async def test_an_attempt_that_runs_during_a_harmless_update_is_accepted(desk: Desk) -> None:
    await desk.create("a", spec=a_spec(delay_s=0))
    desk.store.meanwhile.append(lambda: a_worker_succeeds(desk))

    await desk.scheduler.update(an_update(Spec(retry=RetryPolicy(max_attempts=5)), "spec.retry.max_attempts"))

    after = await desk.get("a")
    assert (after.status.state, after.spec.retry.max_attempts) == (action_pb2.SUCCEEDED, 5)
    assert len(desk.store.batches) == 2, "one creation and one update"


@story
async def test_two_harmless_updates_at_once_lose_neither(desk: Desk) -> None:
    """Both are planned from the same action at the same moment."""
    await desk.create("a")

    async def another() -> None:
        request = an_update(Spec(interruption_limit=5), "spec.interruption_limit")
        await desk.another_scheduler().update(request)

    desk.store.meanwhile.append(another)
    await desk.scheduler.update(an_update(Spec(retry=RetryPolicy(max_attempts=5)), "spec.retry.max_attempts"))

    after = await desk.get("a")
    assert (after.spec.interruption_limit, after.spec.retry.max_attempts, after.meta.revision) == (5, 5, 3)


@pytest.mark.parametrize("state", [action_pb2.SCHEDULED, action_pb2.SUCCEEDED, action_pb2.PAUSED])
def test_a_change_of_the_target_keeps_the_plan_in_a_new_life(state: action_pb2.State) -> None:
    @story
    async def tell(desk: Desk) -> None:
        await desk.create("a", spec=a_spec(delay_s=3600))
        if state == action_pb2.SUCCEEDED:
            await a_worker_succeeds(desk)
        elif state == action_pb2.PAUSED:
            await desk.scheduler.pause(PauseActionRequest(id="a"))
        before = await desk.get("a")

        answer = await desk.scheduler.update(an_update(Spec(handler=PythonHandler(name="f")), "spec.handler"))

        after = await desk.get("a")
        assert answer.plan_effect == IN_NEW_LIFE
        assert after.meta.guid != before.meta.guid
        assert after.spec.handler.name == "f"
        for action in (before, after):
            action.status.ClearField("occurrence")
        assert after.status == before.status
        assert desk.live_row_times("a") == [us_of(before.status.scheduled_time)]

    tell()


SCHEDULES = [
    ("as it was stored", None, KEPT),
    ("left out", Schedule(), KEPT),
    ("the same recurrence, without a start", periodic(), KEPT),
    ("the same recurrence, its default given", periodic(mode=Periodic.FIXED_RATE), KEPT),
    ("another interval", periodic(2 * HOUR_US), AFRESH),
    ("another mode", periodic(mode=Periodic.DRIFT), AFRESH),
    ("an end", periodic(end_time=timestamp(END_OF_TIME_US - 1)), AFRESH),
    ("a delay", Schedule(delay=duration(0), periodic=Periodic(interval=duration(HOUR_US))), AFRESH),
    ("once", Schedule(once={}), AFRESH),
]


@pytest.mark.parametrize(("given", "effect"), [case[1:] for case in SCHEDULES], ids=[case[0] for case in SCHEDULES])
def test_a_schedule_is_compared_with_its_defaults_filled_in(given: Schedule | None, effect: int) -> None:
    @story
    async def tell(desk: Desk) -> None:
        was_once = given is not None and not given.ListFields()
        stored = await desk.create("a", spec=Spec(schedule=None if was_once else periodic(), log=LogLine(message="m")))
        desk.clock.epoch_us += 10 * SECOND_US
        schedule = stored.spec.schedule if given is None else given

        answer = await desk.scheduler.update(an_update(Spec(schedule=schedule, log=LogLine(message="m"))))

        assert answer.plan_effect == effect
        assert (answer.status == stored.status) == (effect == KEPT)
        assert (answer.spec == stored.spec) == (effect == KEPT)

    tell()


@story
async def test_a_mask_that_clears_the_start_starts_over_now(desk: Desk) -> None:
    await desk.create("a", spec=a_spec(delay_s=3600))

    answer = await desk.scheduler.update(an_update(Spec(), "spec.schedule.start_time"))

    assert answer.plan_effect == AFRESH
    assert us_of(answer.status.scheduled_time) == desk.clock.now_us()


@story
async def test_the_settings_of_an_action_without_occurrences_left_can_still_be_changed(desk: Desk) -> None:
    end_us = desk.clock.now_us() + SECOND_US
    await desk.create("a", spec=Spec(schedule=periodic(end_time=timestamp(end_us)), log=LogLine()))
    await a_worker_succeeds(desk)
    desk.clock.epoch_us += HOUR_US

    answer = await desk.scheduler.update(an_update(Spec(retention={"after_success": duration(1)}), "spec.retention"))

    assert (answer.plan_effect, answer.status.state) == (KEPT, action_pb2.SUCCEEDED)


@story
async def test_an_update_that_creates_says_so(desk: Desk) -> None:
    answer = await desk.scheduler.update(an_update(a_spec(), allow_missing=True))

    assert (answer.plan_effect, answer.meta.revision) == (AFRESH, 1)


@story
async def test_a_replayed_update_tells_again_what_it_did_to_the_plan(desk: Desk) -> None:
    await desk.create("a")
    request = an_update(Spec(handler=PythonHandler(name="f")), "spec.handler", request_id="r-1")
    await desk.scheduler.update(request)
    await desk.scheduler.pause(PauseActionRequest(id="a"))

    assert (await desk.scheduler.update(request)).plan_effect == IN_NEW_LIFE


@story
async def test_an_answer_can_be_sent_back(desk: Desk) -> None:
    await desk.create("a")
    answer = await desk.scheduler.update(an_update(Spec(interruption_limit=5), "spec.interruption_limit"))

    again = await desk.scheduler.update(UpdateActionRequest(action=answer, update_mask=FieldMask()))

    assert again.plan_effect == KEPT


@story
async def test_a_paused_action_keeps_its_key_through_every_change_but_that_of_the_schedule(desk: Desk) -> None:
    created = await desk.create("a", spec=a_spec(delay_s=60))
    key = f"{created.meta.guid}-{us_of(created.status.occurrence_time)}"
    desk.clock.epoch_us += 90 * SECOND_US

    await desk.scheduler.pause(PauseActionRequest(id="a"))
    await desk.scheduler.update(an_update(Spec(handler=PythonHandler(name="f")), "spec.handler"))
    await desk.scheduler.update(an_update(Spec(interruption_limit=5), "spec.interruption_limit"))
    resumed = await desk.scheduler.resume(ResumeActionRequest(id="a"))

    occurrence = resumed.status.occurrence
    assert (occurrence.idempotency_key, occurrence.superseded_attempts) == (key, 1)
    planned = await desk.scheduler.update(an_update(a_spec(delay_s=5)))
    assert not planned.status.HasField("occurrence")
