"""Creating actions: what is stored, what is answered, and what is refused."""

import pytest

from clepsydra.core.ids import action_id_for_request
from clepsydra.core.times import SECOND_US, duration, timestamp, us_of
from clepsydra.scheduler.errors import AlreadyExists, InvalidArgument, NotFound
from clepsydra.store.port import Queue
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import LogLine, Periodic, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import GetActionRequest
from tests.scheduler.desk import Desk, a_create, a_spec, story
from tests.unit.specs import filled_in


@story
async def test_a_new_action_is_answered_as_it_is_stored(desk: Desk) -> None:
    request = a_create("a", spec=a_spec(delay_s=60))
    request.action.meta.labels["team"] = "billing"

    created = await desk.scheduler.create(request)

    now_us = desk.clock.now_us()
    assert created.spec == filled_in(a_spec(delay_s=60), now_us)
    assert created.meta.id == "a"
    assert created.meta.revision == 1
    assert created.meta.etag
    assert us_of(created.meta.create_time) == us_of(created.meta.update_time) == now_us
    assert dict(created.meta.labels) == {"team": "billing"}
    assert created.status.state == action_pb2.SCHEDULED
    assert us_of(created.status.scheduled_time) == us_of(created.status.occurrence_time) == now_us + 60 * SECOND_US
    assert await desk.get("a") == created


@story
async def test_its_row_lies_in_the_incoming_queue_at_its_time(desk: Desk) -> None:
    created = await desk.create("a")

    [(queue, shard_id, created_at_us, action_id, guid)] = desk.store.rows
    assert (queue, action_id, guid) == (Queue.INCOMING, "a", created.meta.guid)
    assert 0 <= shard_id < desk.store.shards
    assert created_at_us == us_of(created.meta.create_time)
    assert desk.live_row_times("a") == [us_of(created.status.scheduled_time)]
    assert desk.store.actions["a"].scheduled_at_us == us_of(created.status.scheduled_time)


@story
async def test_rows_spread_over_all_shards(desk: Desk) -> None:
    for number in range(50):
        await desk.create(f"a{number}")

    assert {shard_id for _, shard_id, *_ in desk.store.rows} == set(range(desk.store.shards))


@story
async def test_creating_looks_at_nothing_before_it_writes(desk: Desk) -> None:
    await desk.create("a")

    assert desk.store.looks == []
    assert desk.store.batches == [["a"]]


@story
async def test_an_action_is_created_once(desk: Desk) -> None:
    first = await desk.create("a")

    with pytest.raises(AlreadyExists, match="'a'"):
        await desk.create("a")

    assert await desk.get("a") == first


@story
async def test_ids_are_generated_where_none_is_given(desk: Desk) -> None:
    ids = {(await desk.create("")).meta.id for _ in range(10)}

    assert len(ids) == 10
    assert set(desk.store.actions) == ids


@story
async def test_a_request_id_makes_a_generated_id_repeatable(desk: Desk) -> None:
    created = await desk.create("", request_id="r-1")

    assert created.meta.id == action_id_for_request("r-1")


@story
async def test_a_deleted_id_can_be_used_again(desk: Desk) -> None:
    first = await desk.create("a")
    await desk.delete("a")

    second = await desk.create("a", spec=a_spec(delay_s=5))

    assert second.meta.guid != first.meta.guid
    assert second.meta.etag != first.meta.etag
    assert second.meta.revision == 1
    assert await desk.get("a") == second


@story
async def test_a_tombstone_that_is_purged_meanwhile_is_no_obstacle(desk: Desk) -> None:
    await desk.create("a")
    await desk.delete("a")

    async def purge() -> None:
        guid = desk.store.actions.pop("a").guid
        desk.store.rows = {key: row for key, row in desk.store.rows.items() if key[4] != guid}

    async def nothing() -> None:
        """The first try finds the tombstone."""

    desk.store.meanwhile.extend([nothing, purge])

    created = await desk.create("a")

    assert await desk.get("a") == created


@story
async def test_wrong_fields_are_named_and_nothing_is_written(desk: Desk) -> None:
    request = a_create("a b")
    request.action.spec.retry.jitter = 7

    with pytest.raises(InvalidArgument) as refused:
        await desk.scheduler.create(request)

    assert [path for path, _ in refused.value.violations] == ["action.meta.id", "action.spec.retry.jitter"]
    assert str(refused.value).startswith("action.meta.id: must be")
    assert desk.store.batches == []


@story
async def test_a_period_without_an_occurrence_left_is_refused(desk: Desk) -> None:
    periodic = Periodic(interval=duration(SECOND_US), end_time=timestamp(desk.clock.now_us() - 1))
    spec = Spec(schedule=Schedule(periodic=periodic), log=LogLine())

    with pytest.raises(InvalidArgument, match=r"action\.spec\.schedule\.periodic\.end_time"):
        await desk.create("a", spec=spec)

    assert desk.store.actions == {}


@story
async def test_validate_only_checks_everything_and_writes_nothing(desk: Desk) -> None:
    answer = await desk.create("a", validate_only=True)

    assert answer.status.state == action_pb2.SCHEDULED
    assert desk.store.batches == []
    with pytest.raises(NotFound):
        await desk.get("a")
    await desk.create("a")
    with pytest.raises(AlreadyExists):
        await desk.create("a", validate_only=True)
    await desk.delete("a")
    await desk.create("a", validate_only=True)
    with pytest.raises(InvalidArgument):
        await desk.create("a b", validate_only=True)


@story
async def test_what_is_not_there_or_deleted_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound, match="'a'"):
        await desk.get("a")
    await desk.create("a")
    await desk.delete("a")
    with pytest.raises(NotFound):
        await desk.get("a")
    with pytest.raises(InvalidArgument):
        await desk.scheduler.get(GetActionRequest())
