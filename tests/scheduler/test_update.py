"""Updating actions: whole specs, parts of them, labels alone, and who may."""

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core.action.events import Succeeded
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.core.times import HOUR_US, SECOND_US, duration, duration_us, us_of
from clepsydra.scheduler.errors import AlreadyExists, EtagMismatch, InvalidArgument, NotFound, StoreUnavailable
from clepsydra.scheduler.writes.call import CONFLICTS_MAX
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import (
    Attempt,
    HttpRequest,
    LogLine,
    Periodic,
    PythonHandler,
    RetryPolicy,
    Schedule,
    ScheduledAction,
    Spec,
    Status,
)
from clepsydra.v1.scheduler_pb2 import UpdateActionRequest
from tests.scheduler.desk import Desk, a_spec, story


def an_update(
    spec: Spec | None = None, *paths: str, labels: dict[str, str] | None = None, **fields: Any
) -> UpdateActionRequest:
    request = UpdateActionRequest(update_mask=FieldMask(paths=paths), **fields)
    request.action.meta.id = "a"
    request.action.meta.labels.update(labels or {})
    if spec is not None:
        request.action.spec.CopyFrom(spec)
    return request


async def update(desk: Desk, spec: Spec | None = None, *paths: str, **fields: Any) -> ScheduledAction:
    """The action as a get would return it."""
    action = await desk.scheduler.update(an_update(spec, *paths, **fields))
    action.ClearField("plan_effect")
    return action


@story
async def test_an_update_of_the_schedule_is_a_new_life_with_a_fresh_status(desk: Desk) -> None:
    before = await desk.create("a")

    after = await update(desk, a_spec(delay_s=5))

    assert after.meta.guid != before.meta.guid
    assert after.meta.etag != before.meta.etag
    assert after.meta.revision == 2
    assert after.meta.create_time == before.meta.create_time
    assert us_of(after.status.scheduled_time) == desk.clock.now_us() + 5 * SECOND_US
    assert await desk.get("a") == after
    assert desk.live_row_times("a") == [us_of(after.status.scheduled_time)]


@story
async def test_a_whole_spec_replaces_everything(desk: Desk) -> None:
    await desk.create(
        "a", spec=Spec(log=LogLine(), retry=RetryPolicy(max_attempts=3), start_deadline=duration(SECOND_US))
    )

    after = await update(desk, Spec(handler=PythonHandler(name="remind")))

    assert after.spec.WhichOneof("target") == "handler"
    assert after.spec.retry.max_attempts != 3
    assert not after.spec.HasField("start_deadline")


@story
async def test_labels_come_along_with_a_whole_spec_if_any_are_given(desk: Desk) -> None:
    await desk.create("a")

    labelled = await update(desk, a_spec(), labels={"team": "billing"})
    kept = await update(desk, a_spec())
    replaced = await update(desk, a_spec(), labels={"stage": "test"})

    assert dict(labelled.meta.labels) == dict(kept.meta.labels) == {"team": "billing"}
    assert dict(replaced.meta.labels) == {"stage": "test"}


@story
async def test_labels_alone_change_the_meta_alone(desk: Desk) -> None:
    before = await desk.create("a")
    rows = dict(desk.store.rows)

    after = await update(desk, None, "meta.labels", labels={"team": "billing"})

    assert dict(after.meta.labels) == {"team": "billing"}
    assert after.meta.guid == before.meta.guid
    assert after.meta.revision == 2
    assert after.meta.etag != before.meta.etag
    assert (after.spec, after.status) == (before.spec, before.status)
    assert desk.store.rows == rows
    assert await desk.get("a") == after
    cleared = await update(desk, None, "meta.labels")
    assert dict(cleared.meta.labels) == {}


@story
async def test_labels_can_change_beside_the_workers(desk: Desk) -> None:
    """A status that changes meanwhile is no conflict for labels alone."""
    await desk.create("a")
    desk.store.meanwhile.append(lambda: a_worker_succeeds(desk))

    await update(desk, None, "meta.labels", labels={"team": "billing"})

    after = await desk.get("a")
    assert after.status.state == action_pb2.SUCCEEDED
    assert dict(after.meta.labels) == {"team": "billing"}
    assert len(desk.store.batches) == 2, "one creation and one update"


async def a_worker_succeeds(desk: Desk) -> None:
    """What a worker does to the store when an attempt ends well."""
    stored = desk.store.actions["a"]
    spec, status = Spec.FromString(stored.spec), Status.FromString(stored.status)
    [key] = [key for key in desk.store.rows if key[4] == stored.guid]
    row = desk.store.rows.pop(key)
    moment = Moment(desk.clock.now_us(), row_at_us=row.scheduled_at_us)
    after, at_us = step(spec, status, Succeeded(Attempt()), moment)
    assert at_us is not None
    row.scheduled_at_us = at_us
    desk.store.rows[(key[0], key[1], key[2] + 1, *key[3:])] = row
    desk.store.actions["a"] = stored._replace(status=after.SerializeToString(), scheduled_at_us=at_us)


PARTS = [
    ("spec.retry.max_attempts", Spec(retry=RetryPolicy(max_attempts=0)), lambda spec: spec.retry.max_attempts == 0),
    (
        "spec.retry",
        Spec(retry=RetryPolicy(max_attempts=9)),
        lambda spec: spec.retry.max_attempts == 9 and spec.retry.jitter == 0.1,
    ),
    ("spec.http.url", Spec(http=HttpRequest(url="http://b/")), lambda spec: spec.http.url == "http://b/"),
    ("spec.http.method", Spec(), lambda spec: spec.http.method == "POST"),
    ("spec.http.headers", Spec(), lambda spec: not spec.http.headers),
    ("spec.http.headers", Spec(http={"headers": [{"name": "Y"}]}), lambda spec: spec.http.headers[0].name == "Y"),
    ("spec.http", Spec(http=HttpRequest(url="http://b/")), lambda spec: spec.http.method == "GET"),
    ("spec.handler", Spec(handler=PythonHandler(name="f")), lambda spec: spec.WhichOneof("target") == "handler"),
    ("spec.handler.name", Spec(handler=PythonHandler(name="f")), lambda spec: spec.handler.name == "f"),
    ("spec.start_deadline", Spec(), lambda spec: not spec.HasField("start_deadline")),
    ("spec.attempt_timeout", Spec(), lambda spec: duration_us(spec.attempt_timeout) == 60 * SECOND_US),
    (
        "spec.schedule.periodic",
        Spec(schedule=Schedule(periodic=Periodic(interval=duration(HOUR_US)))),
        lambda spec: spec.schedule.periodic.mode == Periodic.FIXED_RATE,
    ),
    ("spec", Spec(log=LogLine(message="x")), lambda spec: spec.log.message == "x"),
    ("spec.interruption_limit", Spec(interruption_limit=0), lambda spec: spec.interruption_limit == 0),
]  # fmt: skip


@pytest.mark.parametrize(("path", "given", "holds"), PARTS, ids=[f"{n}-{part[0]}" for n, part in enumerate(PARTS)])
def test_a_mask_takes_what_it_names_and_nothing_else(path: str, given: Spec, holds: Any) -> None:
    @story
    async def tell(desk: Desk) -> None:
        http = HttpRequest(url="http://a/", method="PUT", body=b"x", headers=[{"name": "X"}])
        spec = Spec(
            http=http,
            attempt_timeout=duration(5 * SECOND_US),
            start_deadline=duration(SECOND_US),
            retry=RetryPolicy(multiplier=3, jitter=0.5),
        )
        before = await desk.create("a", spec=spec)

        after = await update(desk, given, path)

        assert holds(after.spec)
        if not "spec.attempt_timeout".startswith(path):
            assert after.spec.attempt_timeout == before.spec.attempt_timeout
        if not "spec.retry".startswith(path):
            assert after.spec.retry.multiplier == 3
        is_target = path.startswith(("spec.http", "spec.handler")) and after.spec.http != before.spec.http
        is_schedule = path.startswith("spec.schedule") or path == "spec"
        assert (after.meta.guid != before.meta.guid) == (is_target or is_schedule)

    tell()


@story
async def test_all_paths_of_a_mask_are_taken(desk: Desk) -> None:
    await desk.create("a")
    given = Spec(retry=RetryPolicy(max_attempts=2), start_deadline=duration(SECOND_US))

    after = await update(
        desk, given, "spec.retry.max_attempts", "spec.start_deadline", "meta.labels", labels={"x": "y"}
    )

    assert after.spec.retry.max_attempts == 2
    assert duration_us(after.spec.start_deadline) == SECOND_US
    assert dict(after.meta.labels) == {"x": "y"}
    assert after.spec.log.message == "ping"


@story
async def test_what_a_mask_makes_of_the_spec_is_checked_as_a_whole(desk: Desk) -> None:
    before = await desk.create("a", spec=Spec(log=LogLine(), retry=RetryPolicy(max_delay=duration(SECOND_US))))

    with pytest.raises(InvalidArgument, match=r"action\.spec\.retry\.max_delay"):
        await update(desk, Spec(retry=RetryPolicy(first_delay=duration(HOUR_US))), "spec.retry.first_delay")
    with pytest.raises(InvalidArgument, match=r"action\.spec\.target"):
        await update(desk, None, "spec.log")
    with pytest.raises(InvalidArgument, match=r"action\.spec\.http\.url"):
        await update(desk, Spec(http=HttpRequest(body=b"x")), "spec.http.body")
    with pytest.raises(InvalidArgument, match=r"update_mask\.paths\[0\].*meta\.guid"):
        await update(desk, None, "meta.guid")

    assert await desk.get("a") == before


@story
async def test_a_missing_action_is_not_found_unless_it_may_be_missing(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await update(desk, a_spec())

    created = await update(desk, a_spec(), allow_missing=True)

    assert created.meta.revision == 1
    assert await desk.get("a") == created
    await desk.delete("a")
    with pytest.raises(NotFound):
        await update(desk, a_spec())
    again = await update(desk, a_spec(), "spec.retry", allow_missing=True)
    assert again.spec.log.message == "ping"
    assert again.meta.guid != created.meta.guid
    with pytest.raises(AlreadyExists):
        await desk.create("a")


@story
async def test_what_creates_must_be_whole(desk: Desk) -> None:
    with pytest.raises(InvalidArgument, match=r"action\.spec\.target"):
        await update(desk, Spec(retry=RetryPolicy()), "spec.retry", allow_missing=True)


@story
async def test_an_etag_guards_against_what_others_did(desk: Desk) -> None:
    first = await desk.create("a")

    second = await update(desk, a_spec(), etag=first.meta.etag)
    with pytest.raises(EtagMismatch, match="'a'"):
        await update(desk, a_spec(), etag=first.meta.etag)
    third = await update(desk, None, "meta.labels", labels={"x": "y"}, etag=second.meta.etag)
    with pytest.raises(EtagMismatch):
        await update(desk, None, "meta.labels", etag=second.meta.etag)

    assert await desk.get("a") == third
    await desk.delete("a")
    with pytest.raises(EtagMismatch):
        await update(desk, a_spec(), etag=third.meta.etag, allow_missing=True)


@story
async def test_an_etag_stays_when_an_attempt_ends(desk: Desk) -> None:
    created = await desk.create("a")
    await a_worker_succeeds(desk)

    await update(desk, a_spec(), etag=created.meta.etag)


@story
async def test_an_update_wins_against_workers_by_trying_again(desk: Desk) -> None:
    await desk.create("a", spec=Spec(schedule=Schedule(periodic=Periodic(interval=duration(SECOND_US))), log=LogLine()))
    desk.store.meanwhile.extend([lambda: a_worker_succeeds(desk)] * 3)

    after = await update(desk, a_spec())

    assert await desk.get("a") == after
    assert len(desk.store.batches) == 5
    assert len(desk.store.looks) == 2, "a conflict brings the action along"


@story
async def test_an_update_gives_up_against_an_action_that_never_stands_still(desk: Desk) -> None:
    await desk.create("a", spec=Spec(schedule=Schedule(periodic=Periodic(interval=duration(SECOND_US))), log=LogLine()))
    desk.store.meanwhile.extend([lambda: a_worker_succeeds(desk)] * CONFLICTS_MAX)

    with pytest.raises(StoreUnavailable, match="changes faster"):
        await update(desk, a_spec())


@story
async def test_an_etag_is_checked_again_after_a_conflict(desk: Desk) -> None:
    created = await desk.create("a")

    async def another_update() -> None:
        await desk.another_scheduler().update(an_update(a_spec(delay_s=1)))

    desk.store.meanwhile.append(another_update)

    with pytest.raises(EtagMismatch):
        await update(desk, a_spec(delay_s=2), etag=created.meta.etag)


@story
async def test_validate_only_goes_through_every_check(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await update(desk, a_spec(), validate_only=True)
    await update(desk, a_spec(), validate_only=True, allow_missing=True)
    assert desk.store.actions == {}
    created = await desk.create("a")
    with pytest.raises(EtagMismatch):
        await update(desk, a_spec(), validate_only=True, etag="other")
    with pytest.raises(InvalidArgument):
        await update(desk, None, "spec.log", validate_only=True)

    shown = await update(desk, a_spec(delay_s=1), validate_only=True)

    assert shown.meta.revision == 2
    assert await desk.get("a") == created


@story
async def test_every_try_of_an_update_carries_the_same_guid_and_time(desk: Desk) -> None:
    await desk.create("a", spec=Spec(schedule=Schedule(periodic=Periodic(interval=duration(SECOND_US))), log=LogLine()))
    desk.store.meanwhile.extend([lambda: a_worker_succeeds(desk)] * 2)

    await update(desk, a_spec())

    tries = desk.store.puts[1:]
    assert len(tries) == 3
    assert len({(put.action.guid, put.shard_id, put.created_at_us) for put in tries}) == 1


@story
async def test_what_a_mask_does_not_name_is_not_even_looked_at(desk: Desk) -> None:
    await desk.create("a")
    given = Spec(retry=RetryPolicy(max_attempts=2, jitter=99), http=HttpRequest(url="nowhere"))

    after = await update(desk, given, "spec.retry.max_attempts")

    assert after.spec.retry.max_attempts == 2
    assert after.spec.retry.jitter == 0.1
    assert after.spec.WhichOneof("target") == "log"
