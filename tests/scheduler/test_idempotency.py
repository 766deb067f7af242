"""A replayed call returns what the first one returned, writes nothing, and brings nothing back to life."""

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core.limits import APPLIED_REQUESTS, DELETED_RETENTION_MIN_US, RECENT_REQUESTS
from clepsydra.core.times import SECOND_US, duration, timestamp
from clepsydra.scheduler.errors import AlreadyExists, InvalidArgument, NotFound
from clepsydra.v1.action_pb2 import LogLine, Meta, Periodic, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    DeleteActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from tests.scheduler.desk import Desk, a_create, a_spec, story


def an_update(request_id: str, *paths: str, **fields: Any) -> UpdateActionRequest:
    request = UpdateActionRequest(request_id=request_id, update_mask=FieldMask(paths=paths), **fields)
    request.action.meta.id = "a"
    request.action.spec.CopyFrom(a_spec(delay_s=7))
    return request


def written(desk: Desk) -> int:
    """How many changes took effect: each has its row, live or old."""
    return len(desk.store.rows)


@story
async def test_a_replayed_creation_returns_exactly_the_first_result(desk: Desk) -> None:
    request = a_create("a", request_id="r-1")
    request.action.meta.labels["team"] = "billing"
    first = await desk.scheduler.create(request)
    desk.clock.epoch_us += 10 * SECOND_US

    assert await desk.scheduler.create(request) == first
    assert written(desk) == 1


@story
async def test_also_when_the_action_has_been_changed_since(desk: Desk) -> None:
    first = await desk.create("a", request_id="r-1")
    await desk.scheduler.update(an_update(""))
    changed = await desk.get("a")

    assert await desk.create("a", request_id="r-1") == first
    assert await desk.get("a") == changed
    assert written(desk) == 2


@story
async def test_also_when_the_action_has_been_deleted_since(desk: Desk) -> None:
    first = await desk.create("a", request_id="r-1")
    await desk.delete("a")

    assert await desk.create("a", request_id="r-1") == first
    with pytest.raises(NotFound):
        await desk.get("a")
    assert written(desk) == 2


@story
async def test_also_when_the_id_has_been_used_again_since(desk: Desk) -> None:
    first = await desk.create("a", request_id="r-1")
    await desk.delete("a")
    second = await desk.create("a", request_id="r-2")

    assert await desk.create("a", request_id="r-1") == first
    assert await desk.create("a", request_id="r-2") == second
    assert await desk.get("a") == second


@story
async def test_also_when_the_request_would_be_refused_by_now(desk: Desk) -> None:
    periodic = Periodic(interval=duration(SECOND_US), end_time=timestamp(desk.clock.now_us() + SECOND_US))
    request = a_create("a", spec=Spec(schedule=Schedule(periodic=periodic), log=LogLine()), request_id="r-1")
    first = await desk.scheduler.create(request)
    desk.clock.epoch_us += 10 * SECOND_US

    assert await desk.scheduler.create(request) == first
    request.request_id = "r-2"
    with pytest.raises(AlreadyExists):
        await desk.scheduler.create(request)
    request.action.meta.id = "b"
    with pytest.raises(InvalidArgument, match="end_time"):
        await desk.scheduler.create(request)


@story
async def test_without_a_request_id_nothing_is_a_replay(desk: Desk) -> None:
    await desk.create("a")

    with pytest.raises(AlreadyExists):
        await desk.create("a")


@story
async def test_a_generated_id_is_found_again(desk: Desk) -> None:
    first = await desk.create("", request_id="r-1")

    assert await desk.create("", request_id="r-1") == first
    assert written(desk) == 1


@story
async def test_a_request_id_is_not_for_two_calls(desk: Desk) -> None:
    await desk.create("a", request_id="r-1")
    wrong = "request_id: was used before for another call"

    with pytest.raises(InvalidArgument, match=wrong):
        await desk.create("a", request_id="r-1", spec=a_spec(delay_s=1))
    with pytest.raises(InvalidArgument, match=wrong):
        await desk.scheduler.update(an_update("r-1"))
    with pytest.raises(InvalidArgument, match=wrong):
        await desk.delete("a", request_id="r-1")
    await desk.scheduler.pause(PauseActionRequest(id="a", request_id="r-2"))
    with pytest.raises(InvalidArgument, match=wrong):
        await desk.scheduler.resume(ResumeActionRequest(id="a", request_id="r-2"))


@story
async def test_a_replayed_update_returns_the_action_as_long_as_that_life_lasts(desk: Desk) -> None:
    await desk.create("a")
    first = await desk.scheduler.update(an_update("r-1"))

    assert await desk.scheduler.update(an_update("r-1")) == first
    assert written(desk) == 2


@story
async def test_and_afterwards_who_it_was(desk: Desk) -> None:
    await desk.create("a")
    first = await desk.scheduler.update(an_update("r-1"))
    await desk.scheduler.update(an_update("r-2"))

    replayed = await desk.scheduler.update(an_update("r-1"))

    meta = Meta(
        id="a",
        guid=first.meta.guid,
        revision=2,
        etag=first.meta.etag,
        update_time=first.meta.update_time,
    )
    assert replayed == ScheduledAction(meta=meta, plan_effect=ScheduledAction.PLANNED_AFRESH)
    assert written(desk) == 3
    await desk.delete("a")
    assert await desk.scheduler.update(an_update("r-1")) == replayed


@story
async def test_a_replayed_update_that_created_returns_what_it_created(desk: Desk) -> None:
    first = await desk.scheduler.update(an_update("r-1", allow_missing=True))
    await desk.delete("a")

    assert await desk.scheduler.update(an_update("r-1", allow_missing=True)) == first
    with pytest.raises(NotFound):
        await desk.get("a")


@story
async def test_a_replayed_change_of_labels_is_recognised(desk: Desk) -> None:
    await desk.create("a")
    request = an_update("r-1", "meta.labels")
    request.action.meta.labels["team"] = "billing"
    first = await desk.scheduler.update(request)

    assert await desk.scheduler.update(request) == first
    assert first.meta.revision == 2


@story
async def test_a_replayed_precondition_is_not_checked_again(desk: Desk) -> None:
    """The first call has changed the etag itself."""
    created = await desk.create("a")
    request = an_update("r-1", etag=created.meta.etag)

    assert await desk.scheduler.update(request) == await desk.scheduler.update(request)


@story
async def test_replayed_commands_are_recognised(desk: Desk) -> None:
    await desk.create("a")

    paused = await desk.scheduler.pause(PauseActionRequest(id="a", request_id="r-1"))
    assert await desk.scheduler.pause(PauseActionRequest(id="a", request_id="r-1")) == paused
    resumed = await desk.scheduler.resume(ResumeActionRequest(id="a", request_id="r-2"))
    assert await desk.scheduler.resume(ResumeActionRequest(id="a", request_id="r-2")) == resumed
    run = await desk.scheduler.run(RunActionRequest(id="a", request_id="r-3"))
    assert await desk.scheduler.run(RunActionRequest(id="a", request_id="r-3")) == run

    assert written(desk) == 4
    replayed = await desk.scheduler.pause(PauseActionRequest(id="a", request_id="r-1"))
    assert (replayed.meta.guid, replayed.meta.etag) == (paused.meta.guid, paused.meta.etag)
    assert not replayed.HasField("status")


@story
async def test_a_replayed_deletion_succeeds_and_deletes_nothing_new(desk: Desk) -> None:
    await desk.create("a")
    await desk.delete("a", request_id="r-1")
    await desk.delete("a", request_id="r-1")
    second = await desk.create("a")

    await desk.delete("a", request_id="r-1")

    assert await desk.get("a") == second
    with pytest.raises(InvalidArgument):
        await desk.scheduler.delete(DeleteActionRequest(id="a", request_id="r-1", allow_missing=True))


@story
async def test_validate_only_recognises_a_replay_and_is_not_remembered(desk: Desk) -> None:
    await desk.create("a", request_id="r-1", validate_only=True)
    first = await desk.create("a", request_id="r-1")

    assert await desk.create("a", request_id="r-1", validate_only=True) == first


@story
async def test_the_last_few_calls_are_remembered(desk: Desk) -> None:
    await desk.create("a", request_id="r-0")
    for number in range(1, APPLIED_REQUESTS):
        await desk.scheduler.update(an_update(f"r-{number}"))
    await desk.create("a", request_id="r-0")
    desk.clock.epoch_us += DELETED_RETENTION_MIN_US + 1

    await desk.scheduler.update(an_update("one-too-many"))

    with pytest.raises(AlreadyExists):
        await desk.create("a", request_id="r-0")
    remembered = Meta.FromString(desk.store.actions["a"].meta).applied_requests
    assert [applied.request_id for applied in remembered] == [
        *(f"r-{number}" for number in range(1, APPLIED_REQUESTS)),
        "one-too-many",
    ]


@story
async def test_all_calls_of_the_last_seconds_are_remembered_up_to_a_limit(desk: Desk) -> None:
    await desk.create("a")
    for number in range(RECENT_REQUESTS + 3):
        await desk.scheduler.update(an_update(f"r-{number}"))

    remembered = Meta.FromString(desk.store.actions["a"].meta).applied_requests

    assert [applied.request_id for applied in remembered] == [f"r-{n}" for n in range(3, RECENT_REQUESTS + 3)]
    assert (await desk.scheduler.update(an_update("r-3"))).meta.revision == 5, (
        "revisions 2 to 4 are those of r-0 to r-2"
    )


@story
async def test_what_is_remembered_is_never_shown(desk: Desk) -> None:
    created = await desk.create("a", request_id="r-1")
    updated = await desk.scheduler.update(an_update("r-2"))
    paused = await desk.scheduler.pause(PauseActionRequest(id="a", request_id="r-3"))

    for action in (created, updated, paused, await desk.get("a")):
        assert not action.meta.applied_requests
    assert len(Meta.FromString(desk.store.actions["a"].meta).applied_requests) == 3
