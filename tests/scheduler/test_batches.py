"""Batches: each item has its own outcome, in its place."""

import pytest
from google.rpc.code_pb2 import Code

from clepsydra.core.limits import BATCH_ITEMS
from clepsydra.scheduler.errors import InvalidArgument, NotFound
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchCreateActionsResponse,
    BatchDeleteActionsRequest,
    CreateActionRequest,
    DeleteActionRequest,
)
from tests.scheduler.desk import Desk, Trouble, a_create, a_spec, story


async def batch_create(desk: Desk, *requests: CreateActionRequest) -> BatchCreateActionsResponse:
    return await desk.scheduler.batch_create(BatchCreateActionsRequest(requests=requests))


async def batch_delete(desk: Desk, *requests: DeleteActionRequest) -> list[int]:
    response = await desk.scheduler.batch_delete(BatchDeleteActionsRequest(requests=requests))
    return [result.error.code for result in response.results]


def codes(response: BatchCreateActionsResponse) -> list[int]:
    return [result.error.code for result in response.results]


@story
async def test_many_actions_are_created_in_few_store_calls(desk: Desk) -> None:
    requests = [a_create(f"a{number}") for number in range(BATCH_ITEMS)]

    response = await batch_create(desk, *requests)

    assert [result.action.meta.id for result in response.results] == [f"a{number}" for number in range(BATCH_ITEMS)]
    assert sum(len(batch) for batch in desk.store.batches) == BATCH_ITEMS
    assert len(desk.store.batches) == -(-BATCH_ITEMS // desk.settings.batch)
    assert len(desk.store.actions) == BATCH_ITEMS
    for number in (0, BATCH_ITEMS - 1):
        assert await desk.get(f"a{number}") == response.results[number].action


@story
async def test_each_item_succeeds_or_fails_by_itself(desk: Desk) -> None:
    await desk.create("taken")
    await desk.create("buried")
    await desk.delete("buried")
    wrong = a_create("wrong")
    wrong.action.spec.retry.jitter = 2

    response = await batch_create(
        desk, a_create("new"), a_create("taken"), wrong, a_create("buried"), a_create("also-new"), CreateActionRequest()
    )

    assert codes(response) == [0, Code.ALREADY_EXISTS, Code.INVALID_ARGUMENT, 0, 0, Code.INVALID_ARGUMENT]
    assert response.results[2].error.message.startswith("requests[2].action.spec.retry.jitter: ")
    assert response.results[5].error.message == "requests[5].action: is required"
    assert {"new", "buried", "also-new"} <= set(desk.store.actions)


@story
async def test_the_second_of_two_with_the_same_id_exists_already(desk: Desk) -> None:
    response = await batch_create(desk, a_create("a", spec=a_spec(1)), a_create("b"), a_create("a", spec=a_spec(2)))

    assert codes(response) == [0, 0, Code.ALREADY_EXISTS]
    assert await desk.get("a") == response.results[0].action


@story
async def test_the_second_of_two_with_the_same_request_id_is_a_replay(desk: Desk) -> None:
    response = await batch_create(desk, a_create("", request_id="r-1"), a_create("", request_id="r-1"))

    assert response.results[0].action.meta.id
    assert response.results[1] == response.results[0]
    assert len(desk.store.actions) == 1


@story
async def test_a_single_call_and_an_item_of_a_batch_replay_each_other(desk: Desk) -> None:
    first = await desk.create("a", request_id="r-1")

    response = await batch_create(
        desk, a_create("a", request_id="r-1"), a_create("a", request_id="r-1", spec=a_spec(1))
    )

    assert response.results[0].action == first
    assert response.results[1].error.message == "requests[1].request_id: was used before for another call"


@story
async def test_items_may_be_validated_only(desk: Desk) -> None:
    await desk.create("taken")

    response = await batch_create(
        desk, a_create("a", validate_only=True), a_create("taken", validate_only=True), a_create("b")
    )

    assert codes(response) == [0, Code.ALREADY_EXISTS, 0]
    assert set(desk.store.actions) == {"taken", "b"}


@story
async def test_what_the_store_does_not_do_is_tried_again_for_those_concerned(desk: Desk) -> None:
    await desk.create("taken")
    desk.store.troubles.extend([Trouble.LOST_ON_THE_WAY_BACK, Trouble.UNAVAILABLE])

    response = await batch_create(desk, a_create("a"), a_create("b"))

    assert codes(response) == [0, 0]
    assert len(desk.store.batches) == 4


@story
async def test_too_large_a_batch_is_refused_as_a_whole(desk: Desk) -> None:
    too_many = [CreateActionRequest()] * (BATCH_ITEMS + 1)
    with pytest.raises(InvalidArgument, match="requests: must not have more than"):
        await batch_create(desk, *too_many)
    with pytest.raises(InvalidArgument, match="requests: "):
        await batch_delete(desk, *[DeleteActionRequest()] * (BATCH_ITEMS + 1))


@story
async def test_an_empty_batch_is_done_at_once(desk: Desk) -> None:
    assert len((await batch_create(desk)).results) == 0
    assert await batch_delete(desk) == []
    assert desk.store.batches == []


@story
async def test_many_actions_are_deleted_in_two_store_calls(desk: Desk) -> None:
    await batch_create(desk, *[a_create(f"a{number}") for number in range(300)])
    desk.store.batches.clear()

    assert await batch_delete(desk, *[DeleteActionRequest(id=f"a{number}") for number in range(300)]) == [0] * 300

    assert len(desk.store.looks) == len(desk.store.batches) == 1
    with pytest.raises(NotFound):
        await desk.get("a7")


@story
async def test_deletions_have_their_own_outcomes_too(desk: Desk) -> None:
    created = await desk.create("a")
    await desk.create("b")
    await desk.create("c")

    outcomes = await batch_delete(
        desk,
        DeleteActionRequest(id="a", etag=created.meta.etag),
        DeleteActionRequest(id="b", etag="other"),
        DeleteActionRequest(id="missing"),
        DeleteActionRequest(id="missing", allow_missing=True),
        DeleteActionRequest(),
        DeleteActionRequest(id="c"),
        DeleteActionRequest(id="c"),
    )

    assert outcomes == [0, Code.ABORTED, Code.NOT_FOUND, 0, Code.INVALID_ARGUMENT, 0, Code.NOT_FOUND]
    assert (await desk.get("b")).meta.id == "b"
