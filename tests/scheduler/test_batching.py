"""Many callers share few store calls, and memory stays bounded."""

import asyncio

import pytest
from google.rpc.code_pb2 import Code

from clepsydra.core.times import MILLISECOND_US
from clepsydra.scheduler.errors import AlreadyExists, DeadlinePassed, Overloaded
from clepsydra.scheduler.writes.lives import Plan, Stamp
from clepsydra.scheduler.writes.mutations import Delete
from clepsydra.scheduler.writes.pipeline import WritePipeline
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import PythonHandler, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    DeleteActionRequest,
    GetActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
)
from tests.scheduler.desk import Desk, a_create, at_a_desk, settled, story


def creating(desk: Desk, *action_ids: str) -> list[asyncio.Task[ScheduledAction]]:
    return [asyncio.create_task(desk.create(action_id)) for action_id in action_ids]


def hold_up(desk: Desk) -> asyncio.Event:
    desk.store.held_up = asyncio.Event()
    return desk.store.held_up


@story
async def test_calls_that_come_together_go_out_together(desk: Desk) -> None:
    await asyncio.gather(*creating(desk, *(f"a{number}" for number in range(64))))

    assert [len(batch) for batch in desk.store.batches] == [64]


@at_a_desk(batches_in_flight=1)
async def test_what_comes_in_while_a_batch_is_under_way_goes_out_in_the_next(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    others = creating(desk, *(f"b{number}" for number in range(50)))
    await settled()
    assert desk.store.batches == [["a"]]

    line.set()
    await asyncio.gather(*first, *others)

    assert [len(batch) for batch in desk.store.batches] == [1, 50]


@story
async def test_those_who_come_back_wait_for_the_company_they_had(desk: Desk) -> None:
    await asyncio.gather(*creating(desk, "a1", "b1", "c1"))

    first = creating(desk, "a2")
    await settled()
    assert len(desk.store.batches) == 1
    others = creating(desk, "b2", "c2")
    await asyncio.gather(*first, *others)

    assert desk.store.batches == [["a1", "b1", "c1"], ["a2", "b2", "c2"]]
    assert desk.clock.monotonic_us() == 0


@story
async def test_but_not_for_long_and_then_they_expect_less(desk: Desk) -> None:
    await asyncio.gather(*creating(desk, "a1", "b1", "c1"))

    await desk.create("a2")
    waited_us = desk.clock.monotonic_us()
    assert 0 < waited_us < 10 * MILLISECOND_US
    await desk.create("a3")

    assert desk.store.batches[1:] == [["a2"], ["a3"]]
    assert desk.clock.monotonic_us() == waited_us


class Defective(Delete):
    def plan(self, current: Action | None) -> Plan:
        raise ZeroDivisionError


@story
async def test_a_defect_that_one_call_meets_does_not_reach_the_others(desk: Desk) -> None:
    pipeline = WritePipeline(desk.store, desk.clock, desk.ids, desk.settings)
    stamp = Stamp(desk.ids.guid(), 0, desk.clock.now_us())
    kinds = {"a": Delete, "b": Defective, "c": Delete}
    mutations = [kind(DeleteActionRequest(id=each, allow_missing=True), stamp, 0) for each, kind in kinds.items()]

    outcomes = await asyncio.gather(*(pipeline.change([each], None) for each in mutations), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [list, ZeroDivisionError, list]


@at_a_desk(batches_in_flight=2)
async def test_a_small_batch_waits_for_the_one_that_is_under_way_but_not_for_long(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    second = creating(desk, "b")
    await settled()
    assert desk.store.batches == [["a"]]

    await asyncio.sleep(0.01)

    assert desk.store.batches == [["a"], ["b"]]
    line.set()
    await asyncio.gather(*first, *second)


@at_a_desk(batches_in_flight=2)
async def test_a_large_one_does_not_wait(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    many = creating(desk, *(f"b{number}" for number in range(200)))
    await settled()

    assert [len(batch) for batch in desk.store.batches] == [1, 200]
    assert desk.clock.monotonic_us() == 0
    line.set()
    await asyncio.gather(*first, *many)


@at_a_desk(batches_in_flight=3, batch=10)
async def test_so_many_batches_are_under_way_at_once_and_so_large(desk: Desk) -> None:
    line = hold_up(desk)
    calls = creating(desk, *(f"a{number}" for number in range(100)))
    await settled()
    assert desk.store.under_way == 3

    line.set()
    await asyncio.gather(*calls)

    assert desk.store.most_under_way == 3
    assert [len(batch) for batch in desk.store.batches] == [10] * 10


@at_a_desk(batches_in_flight=1, batch_bytes=1000)
async def test_a_batch_is_closed_when_it_has_grown_large(desk: Desk) -> None:
    spec = Spec(handler=PythonHandler(name="f", payload=b"x" * 600))

    await asyncio.gather(*(desk.create(f"a{number}", spec=spec) for number in range(6)))

    assert [len(batch) for batch in desk.store.batches] == [2, 2, 2]


@at_a_desk(batches_in_flight=1)
async def test_a_batch_names_an_action_once(desk: Desk) -> None:
    await desk.create("a")
    desk.store.batches.clear()

    outcomes = await asyncio.gather(
        desk.scheduler.pause(PauseActionRequest(id="a")),
        desk.create("b"),
        desk.scheduler.resume(ResumeActionRequest(id="a")),
        desk.create("c"),
        return_exceptions=True,
    )

    assert all(len(set(batch)) == len(batch) for batch in desk.store.batches)
    assert {"b", "c"} <= {action_id for batch in desk.store.batches for action_id in batch}
    assert isinstance(outcomes[0], ScheduledAction)


@at_a_desk(batches_in_flight=1)
async def test_many_changes_of_one_action_hold_up_nobody_else(desk: Desk) -> None:
    many = creating(desk, *["same"] * 2000)
    one = creating(desk, "other")
    await asyncio.gather(*one)

    # One store call for each batch, not one for each call.
    assert desk.store.batches == [["same"], ["same"], ["other"]]
    outcomes = await asyncio.gather(*many, return_exceptions=True)
    assert sum(isinstance(outcome, ScheduledAction) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 1999


@at_a_desk(batches_in_flight=1)
async def test_what_nobody_waits_for_any_more_is_not_sent(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    waiting = creating(desk, "b", "c")
    await settled()
    waiting[0].cancel()

    line.set()
    await asyncio.gather(*first, waiting[1])

    assert desk.store.batches == [["a"], ["c"]]
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]


@at_a_desk(batches_in_flight=1)
async def test_neither_is_any_item_of_a_batch_whose_caller_has_gone(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    requests = [a_create(f"b{number}") for number in range(3)]
    batch = asyncio.create_task(desk.scheduler.batch_create(BatchCreateActionsRequest(requests=requests)))
    await settled()
    batch.cancel()
    await settled()

    line.set()
    await asyncio.gather(*first)
    await desk.scheduler.close()

    assert desk.store.batches == [["a"]]
    assert batch.cancelled()


@at_a_desk(batches_in_flight=1)
async def test_what_has_been_sent_is_done_even_if_nobody_waits(desk: Desk) -> None:
    line = hold_up(desk)
    [gone] = creating(desk, "a")
    await settled()
    gone.cancel()
    await settled()

    line.set()
    await desk.scheduler.close()

    assert (await desk.get("a")).meta.id == "a"


@at_a_desk(batches_in_flight=1)
async def test_a_call_past_its_deadline_is_not_written(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    late = asyncio.create_task(desk.scheduler.create(a_create("late"), remaining_s=0.005))
    in_time = asyncio.create_task(desk.scheduler.create(a_create("in-time"), remaining_s=60))
    asyncio.get_running_loop().call_later(0.01, line.set)

    with pytest.raises(DeadlinePassed, match="deadline"):
        await late
    await asyncio.gather(*first, in_time)

    assert desk.clock.monotonic_us() >= 10 * MILLISECOND_US
    assert set(desk.store.actions) == {"a", "in-time"}


@at_a_desk(pending_items=10, batches_in_flight=1)
async def test_more_than_so_many_are_refused(desk: Desk) -> None:
    line = hold_up(desk)
    calls = creating(desk, *(f"a{number}" for number in range(12)))
    await settled()
    assert [call.done() for call in calls] == [False] * 10 + [True] * 2

    line.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(outcome, Overloaded) for outcome in outcomes[10:])
    assert len(desk.store.actions) == 10
    await desk.create("there-is-room-again")


@at_a_desk(pending_bytes=16 * 1024 * 1024, batches_in_flight=1)
async def test_more_than_so_much_is_refused(desk: Desk) -> None:
    line = hold_up(desk)
    spec = Spec(handler=PythonHandler(name="f", payload=b"x" * 256 * 1024))
    calls = [asyncio.create_task(desk.create(f"a{number}", spec=spec)) for number in range(70)]
    await settled()

    line.set()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(outcome, ScheduledAction) for outcome in outcomes) == 63
    assert sum(isinstance(outcome, Overloaded) for outcome in outcomes) == 7
    await desk.create("there-is-room-again", spec=spec)


@at_a_desk(pending_items=10, batches_in_flight=1)
async def test_those_who_leave_make_room(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    for call in creating(desk, *(f"b{number}" for number in range(9))):
        await asyncio.sleep(0)
        call.cancel()
    await settled()
    line.set()
    await asyncio.gather(*first)
    await settled()

    await asyncio.gather(*creating(desk, *(f"c{number}" for number in range(10))))

    assert len(desk.store.actions) == 11


@story
async def test_reads_share_batches_too_and_may_read_the_same_action(desk: Desk) -> None:
    await desk.create("a")

    actions = await asyncio.gather(*(desk.scheduler.get(GetActionRequest(id="a")) for _ in range(20)))

    assert desk.store.looks == [["a"]]
    assert all(action == actions[0] for action in actions)


@story
async def test_close_waits_for_what_was_accepted(desk: Desk) -> None:
    line = hold_up(desk)
    calls = creating(desk, "a", "b")
    await settled()
    closing = asyncio.create_task(desk.scheduler.close())
    await settled()
    assert not closing.done()

    line.set()
    await closing

    assert set(desk.store.actions) == {"a", "b"}
    await asyncio.gather(*calls)


@at_a_desk(pending_items=10, batches_in_flight=1)
async def test_of_a_batch_so_many_are_accepted_as_there_is_room_for(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a", "b")
    await settled()
    requests = [a_create(f"c{number}") for number in range(12)]
    batch = asyncio.create_task(desk.scheduler.batch_create(BatchCreateActionsRequest(requests=requests)))
    await settled()

    line.set()
    await asyncio.gather(*first)

    results = (await batch).results
    assert [result.error.code for result in results] == [0] * 8 + [Code.RESOURCE_EXHAUSTED] * 4
    assert len(desk.store.actions) == 10
    await desk.create("there-is-room-again")


@at_a_desk(batches_in_flight=1, batch=4)
async def test_batches_that_share_an_action_are_settled_one_after_the_other(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "first")
    await settled()
    shared = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "e")]
    batches = [
        asyncio.create_task(
            desk.scheduler.batch_create(BatchCreateActionsRequest(requests=[a_create(each) for each in ids]))
        )
        for ids in shared
    ]
    await settled()

    line.set()
    await asyncio.gather(*first)
    codes = [[result.error.code for result in (await batch).results] for batch in batches]

    exists = Code.ALREADY_EXISTS
    assert codes == [[0, 0], [exists, 0], [exists, exists], [0, 0]]
    assert desk.store.batches == [["first"], ["a", "b", "c"], ["c", "a", "d", "e"]]


@at_a_desk(batches_in_flight=1)
async def test_a_batch_past_its_deadline_is_not_written(desk: Desk) -> None:
    line = hold_up(desk)
    first = creating(desk, "a")
    await settled()
    requests = BatchCreateActionsRequest(requests=[a_create("b"), a_create("c")])
    late = asyncio.create_task(desk.scheduler.batch_create(requests, remaining_s=0.005))
    asyncio.get_running_loop().call_later(0.01, line.set)

    results = (await late).results

    assert [result.error.code for result in results] == [Code.DEADLINE_EXCEEDED] * 2
    await asyncio.gather(*first)
    assert set(desk.store.actions) == {"a"}
