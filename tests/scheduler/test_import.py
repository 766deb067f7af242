"""Importing actions: each goes on as it stood, a repetition writes nothing, and nonsense is refused by its name."""

from typing import Any

import pytest

from clepsydra.core.action.memory import show_attempts
from clepsydra.core.action.occurrence import idempotency_key, keep_key
from clepsydra.core.times import END_OF_TIME_US, HOUR_US, SECOND_US, duration, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Meta, Periodic, Schedule, ScheduledAction, Spec, Status
from clepsydra.v1.scheduler_pb2 import (
    ImportActionRequest,
    ImportActionsRequest,
    ImportActionsResponse,
    PauseActionRequest,
    UpdateActionRequest,
)
from tests.scheduler.desk import Desk, Trouble, a_create, a_spec, story

CREATED, REPLACED, SKIPPED, REPEATED = 1, 2, 3, 4


def exported(action_id: str = "a", *, state: Any = "SCHEDULED", at_us: int = 5 * SECOND_US, **fields: Any) -> Any:
    action = ScheduledAction(meta=Meta(id=action_id, labels={"team": "ops"}), spec=a_spec())
    action.meta.create_time.CopyFrom(timestamp(1_000_000))
    status = Status(state=state, scheduled_time=timestamp(at_us), occurrence_time=timestamp(at_us), **fields)
    action.status.CopyFrom(status)
    return action


async def import_all(desk: Desk, *actions: ScheduledAction, **fields: Any) -> ImportActionsResponse:
    requests = [ImportActionRequest(action=action, **fields) for action in actions]
    return await desk.scheduler.import_actions(ImportActionsRequest(requests=requests))


async def outcomes(desk: Desk, *actions: ScheduledAction, **fields: Any) -> list[int]:
    return [result.outcome for result in (await import_all(desk, *actions, **fields)).results]


@story
async def test_an_imported_action_goes_on_as_it_stood(desk: Desk) -> None:
    action = exported(state="RETRYING", at_us=90 * SECOND_US)
    action.spec.schedule.CopyFrom(Schedule(start_time=timestamp(0), periodic=Periodic(interval=duration(HOUR_US))))
    action.status.occurrence_time.CopyFrom(timestamp(60 * SECOND_US))
    action.status.occurrence.failed_attempts = 2
    action.status.counters.runs = 7
    action.status.last_attempt.CopyFrom(Attempt(number=2, worker="w", outcome=Attempt.FAILURE, error="no"))
    show_attempts(action.status)

    assert await outcomes(desk, action) == [CREATED]

    got = await desk.get("a")
    assert got.status == action.status
    assert got.meta.labels == {"team": "ops"}
    assert got.meta.create_time == action.meta.create_time
    assert desk.live_row_times() == [90 * SECOND_US]
    assert got.spec.HasField("retry"), "defaults are filled in"


@story
async def test_a_paused_action_stays_paused_and_an_ended_one_ended(desk: Desk) -> None:
    until_us = desk.clock.now_us() + HOUR_US
    paused = exported("p", state="PAUSED", at_us=END_OF_TIME_US)
    ended = exported("e", state="SUCCEEDED", at_us=until_us)
    paused.status.occurrence_time.CopyFrom(timestamp(SECOND_US))

    assert await outcomes(desk, paused, ended) == [CREATED, CREATED]

    assert desk.live_row_times("p") == [END_OF_TIME_US]
    assert desk.live_row_times("e") == [until_us]
    assert (await desk.get("e")).status.state == action_pb2.SUCCEEDED


@story
async def test_work_that_had_begun_goes_on_under_its_key(desk: Desk) -> None:
    action = exported(state="RETRYING", at_us=90 * SECOND_US)
    action.meta.guid = "0123456789abcdef" * 2
    action.status.occurrence_time.CopyFrom(timestamp(60 * SECOND_US))
    action.status.occurrence.failed_attempts = 2

    assert await outcomes(desk, action) == [CREATED]

    occurrence = (await desk.get("a")).status.occurrence
    assert occurrence.idempotency_key == f"{action.meta.guid}-{60 * SECOND_US}"
    assert occurrence.failed_attempts == 2


@story
async def test_what_was_exported_is_what_is_there_after_the_import(desk: Desk) -> None:
    created = await desk.create("a")
    paused = await desk.scheduler.pause(PauseActionRequest(id=(await desk.create("b")).meta.id))
    await desk.delete("a")
    await desk.delete("b")

    assert await outcomes(desk, created, paused) == [CREATED, CREATED]

    for before in (created, paused):
        after = await desk.get(before.meta.id)
        # Its key is written down now, because the guid from which it was made is another here.
        keep_key(before.status, before.meta.guid)
        assert (after.spec, after.status) == (before.spec, before.status)
        assert after.meta.guid != before.meta.guid, "a guid is never current twice"


@story
async def test_the_target_sees_the_same_idempotency_key_after_a_move_and_after_a_second_one(desk: Desk) -> None:
    created = await desk.create("a")
    key = idempotency_key(created.status, created.meta.guid)
    for _ in range(2):
        exported_action = await desk.get("a")
        await desk.delete("a")
        await outcomes(desk, exported_action)
        moved = await desk.get("a")
        assert idempotency_key(moved.status, moved.meta.guid) == key


@story
async def test_an_existing_action_is_skipped_replaced_or_an_error(desk: Desk) -> None:
    await desk.create("a")
    before = await desk.get("a")

    assert await outcomes(desk, exported()) == [SKIPPED]
    assert await desk.get("a") == before

    failed = await import_all(desk, exported(), existing="ERROR")
    assert "exists already" in failed.results[0].error.message
    assert await desk.get("a") == before

    assert await outcomes(desk, exported(), existing="REPLACE") == [REPLACED]
    after = await desk.get("a")
    assert us_of(after.status.scheduled_time) == 5 * SECOND_US
    assert after.meta.revision == before.meta.revision + 1
    assert desk.live_row_times() == [5 * SECOND_US]


@story
async def test_a_repeated_import_with_a_request_id_does_not_set_the_action_back(desk: Desk) -> None:
    fields = {"existing": "REPLACE", "request_id": "line-1"}
    assert await outcomes(desk, exported(), **fields) == [CREATED]
    changed = ScheduledAction(meta=Meta(id="a"), spec=a_spec(500))
    await desk.scheduler.update(UpdateActionRequest(action=changed))
    before = await desk.get("a")

    assert await outcomes(desk, exported(), **fields) == [REPEATED]

    assert await desk.get("a") == before


@story
async def test_an_import_whose_answer_was_lost_is_done_once(desk: Desk) -> None:
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)

    assert await outcomes(desk, exported()) == [CREATED]

    assert len(desk.live_row_times()) == 1


@story
async def test_of_two_items_with_one_id_the_second_is_skipped(desk: Desk) -> None:
    assert sorted(await outcomes(desk, exported(at_us=5), exported(at_us=7))) == [CREATED, SKIPPED]


@story
async def test_validate_only_writes_nothing(desk: Desk) -> None:
    assert await outcomes(desk, exported(), validate_only=True) == [CREATED]

    assert not desk.store.actions


@story
async def test_each_item_has_its_own_outcome_and_names_its_field(desk: Desk) -> None:
    wrong = exported("b")
    wrong.spec.retry.jitter = 7

    results = (await import_all(desk, exported("a"), wrong, exported("c"))).results

    assert [result.outcome for result in results] == [CREATED, 0, CREATED]
    assert results[1].error.message.startswith("requests[1].action.spec.retry.jitter: must be a number")


def _without(path: str) -> Any:
    def change(action: ScheduledAction) -> None:
        part: Any = action
        *steps, last = path.split(".")
        for step in steps:
            part = getattr(part, step)
        part.ClearField(last)

    return change


NONSENSE: dict[str, tuple[str, Any]] = {
    "no id": ("action.meta.id", _without("meta.id")),
    "no spec": ("action.spec", _without("spec")),
    "no status": ("action.status", _without("status")),
    "no state": ("action.status.state", _without("status.state")),
    "a deleted one": ("action.status.state", lambda action: setattr(action.status, "state", action_pb2.DELETED)),
    "no planned time": ("action.status.scheduled_time", _without("status.scheduled_time")),
    "no occurrence": ("action.status.occurrence_time", _without("status.occurrence_time")),
    "planned before its occurrence": (
        "action.status.scheduled_time",
        lambda action: action.status.occurrence_time.CopyFrom(timestamp(6 * SECOND_US)),
    ),
    "planned for the end of time": (
        "action.status.scheduled_time",
        lambda action: action.status.scheduled_time.CopyFrom(timestamp(END_OF_TIME_US)),
    ),
    "a retry of nothing": (
        "action.status.occurrence",
        lambda action: setattr(action.status, "state", action_pb2.RETRYING),
    ),
    "a count that would overflow": (
        "action.status.counters.runs",
        lambda action: setattr(action.status.counters, "runs", 2**64 - 1),
    ),
    "a reason without end": ("action.status.reason", lambda action: setattr(action.status, "reason", "x" * 5000)),
    "an outcome that nobody knows": (
        "action.status.last_attempt.outcome",
        lambda action: setattr(action.status.last_attempt, "outcome", 77),
    ),
    "created in the far future": (
        "action.meta.create_time",
        lambda action: action.meta.create_time.CopyFrom(timestamp(END_OF_TIME_US)),
    ),
    "a target that is not valid": ("action.spec.http.url", lambda action: action.spec.http.SetInParent()),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_what_makes_no_sense_is_refused_by_its_name(kind: str) -> None:
    path, change = NONSENSE[kind]

    @story
    async def refused(desk: Desk) -> None:
        action = exported()
        change(action)
        [result] = (await import_all(desk, action)).results
        assert result.error.message.startswith(f"requests[0].{path}: ")
        assert not desk.store.actions

    refused()


@story
async def test_an_action_that_cannot_be_decoded_can_be_replaced(desk: Desk) -> None:
    await desk.scheduler.create(a_create("a"))
    desk.store.actions["a"] = desk.store.actions["a"]._replace(spec=b"\xff")

    assert await outcomes(desk, exported(), existing="REPLACE") == [REPLACED]

    assert (await desk.get("a")).spec == Spec.FromString(desk.store.actions["a"].spec)
