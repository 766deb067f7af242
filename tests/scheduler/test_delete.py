"""Deleting actions: what is left behind, for how long, and who may."""

import pytest

from clepsydra.core.limits import DELETED_RETENTION_DEFAULT_US
from clepsydra.core.times import HOUR_US
from clepsydra.scheduler.errors import Damaged, EtagMismatch, InvalidArgument, NotFound
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, Status
from clepsydra.v1.scheduler_pb2 import DeleteActionRequest, ListActionsRequest
from tests.scheduler.desk import Desk, a_create, at_a_desk, story


@story
async def test_a_deleted_action_leaves_a_tombstone_until_its_purge(desk: Desk) -> None:
    created = await desk.create("a")

    await desk.delete("a")

    stored = desk.store.actions["a"]
    assert Status.FromString(stored.status).state == action_pb2.DELETED
    assert stored.guid != created.meta.guid
    assert stored.scheduled_at_us == desk.clock.now_us() + DELETED_RETENTION_DEFAULT_US
    assert desk.live_row_times("a") == [stored.scheduled_at_us]


@story
async def test_a_tombstone_holds_nothing_that_the_user_sent(desk: Desk) -> None:
    request = a_create("a")
    request.action.meta.labels["secret"] = "label"
    await desk.scheduler.create(request)

    await desk.delete("a")

    stored = desk.store.actions["a"]
    assert stored.spec == b""
    assert not Meta.FromString(stored.meta).labels


@at_a_desk(deleted_retention_ms=2 * HOUR_US // 1000)
async def test_how_long_is_a_setting(desk: Desk) -> None:
    await desk.create("a")

    await desk.delete("a")

    assert desk.live_row_times("a") == [desk.clock.now_us() + 2 * HOUR_US]


@story
async def test_what_is_missing_is_not_found_unless_it_may_be_missing(desk: Desk) -> None:
    with pytest.raises(NotFound, match="'a'"):
        await desk.delete("a")
    await desk.delete("a", allow_missing=True)
    await desk.create("a")
    await desk.delete("a")
    with pytest.raises(NotFound):
        await desk.delete("a")
    await desk.delete("a", allow_missing=True)

    assert [batch for batch in desk.store.batches if batch] == [["a"], ["a"]]


@story
async def test_an_etag_guards_a_deletion(desk: Desk) -> None:
    created = await desk.create("a")

    with pytest.raises(EtagMismatch):
        await desk.delete("a", etag="other")
    await desk.delete("a", etag=created.meta.etag)

    with pytest.raises(NotFound):
        await desk.get("a")


@story
async def test_validate_only_deletes_nothing(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.delete("a", validate_only=True)
    created = await desk.create("a")
    with pytest.raises(EtagMismatch):
        await desk.delete("a", validate_only=True, etag="other")

    await desk.delete("a", validate_only=True)

    assert await desk.get("a") == created


@story
async def test_of_two_deletions_at_once_one_succeeds(desk: Desk) -> None:
    await desk.create("a")

    async def another_deletion() -> None:
        await desk.another_scheduler().delete(DeleteActionRequest(id="a"))

    desk.store.meanwhile.append(another_deletion)

    with pytest.raises(NotFound):
        await desk.delete("a")


@story
async def test_wrong_requests_are_refused(desk: Desk) -> None:
    with pytest.raises(InvalidArgument, match="id: is required"):
        await desk.scheduler.delete(DeleteActionRequest())


@story
async def test_an_action_that_cannot_be_decoded_is_shown_and_can_be_deleted(desk: Desk) -> None:
    await desk.create("a")
    desk.store.actions["a"] = desk.store.actions["a"]._replace(spec=b"\xff\xff\xff")

    with pytest.raises(Damaged, match="'a'"):
        await desk.get("a")
    with pytest.raises(Damaged):
        await desk.create("a")
    [shown] = (await desk.scheduler.list_actions(ListActionsRequest())).actions
    assert (shown.meta.id, shown.status.reason) == ("a", "what is stored of this action cannot be decoded")

    await desk.delete("a")

    with pytest.raises(NotFound):
        await desk.get("a")
    await desk.create("a")
