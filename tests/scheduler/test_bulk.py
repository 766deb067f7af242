"""A batch that is taken in column by column comes to what its requests come to one by one."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from google.rpc.code_pb2 import Code

from clepsydra.core.ids import Ids
from clepsydra.core.limits import CALL_RETRY_US, PAYLOAD_BYTES
from clepsydra.core.moments import END_OF_TIME_US, SECOND_US, duration, set_us
from clepsydra.core.validation import violations_of
from clepsydra.scheduler import service
from clepsydra.scheduler.bulk import columns_of, creations
from clepsydra.scheduler.first_life import first_life
from clepsydra.store.port import Put
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest, DeleteActionRequest
from tests.fuzz.bending import bent
from tests.scheduler.desk import Desk, Trouble, story
from tests.scheduler.usual_requests import NOW_US, UNUSUAL, usual_request
from tests.simulation import loop as virtual

_SHARDS = 4


def _batch(*requests: CreateActionRequest) -> BatchCreateActionsRequest:
    return BatchCreateActionsRequest(requests=requests)


def _named(action_id: str, start_us: int = NOW_US + SECOND_US) -> CreateActionRequest:
    request = usual_request(start_us)
    request.action.meta.id = action_id
    return request


def _puts_as_the_general_way_has_them(batch: BatchCreateActionsRequest) -> list[Put]:
    """None at all if the batch is not taken in by columns; if it is, all in it must be fine and come to the same."""
    columns = columns_of(batch, NOW_US)
    if columns is None:
        return []
    puts = creations(columns, Ids(random.Random(1)), _SHARDS, NOW_US)
    ids = Ids(random.Random(1))
    drawn = zip(ids.shards_of_many(_SHARDS, len(puts)), ids.guids(len(puts)), strict=True)
    action_ids = columns.action_ids or ids.action_ids(len(puts), NOW_US)
    for request, action_id, (shard_id, guid), put in zip(batch.requests, action_ids, drawn, puts, strict=True):
        assert violations_of(request) == ()
        assert request.action.meta.id in ("", action_id)
        general = first_life(request.action, action_id, guid, NOW_US)
        # All of it is the same to the byte, because no requests of a bulk have labels.
        assert put == Put(None, general, shard_id, NOW_US)
    return puts


@pytest.mark.parametrize(
    "starts_us",
    [
        [SECOND_US + 1, NOW_US, END_OF_TIME_US - 1],
        [1_800_000_000 * SECOND_US] * 3,
        [1_800_000_000 * SECOND_US, 1_800_000_000 * SECOND_US + 1, 1_800_000_001 * SECOND_US],
    ],
    ids=["parts of seconds", "whole seconds", "some are whole"],
)
@pytest.mark.parametrize("are_named", [True, False])
def test_requests_that_are_alike_are_taken_in_as_they_would_be_one_by_one(
    starts_us: list[int], are_named: bool
) -> None:
    batch = _batch(*(_named(f"a{n}" if are_named else "", at_us) for n, at_us in enumerate(starts_us)))
    batch.requests[1].action.spec.handler.ClearField("payload")
    batch.requests[2].action.spec.handler.ClearField("content_type")

    assert len(_puts_as_the_general_way_has_them(batch)) == 3


def test_requests_without_a_time_are_taken_in_too() -> None:
    batch = _batch(usual_request(), usual_request())
    batch.requests[0].action.spec.ClearField("schedule")
    batch.requests[1].action.spec.schedule.Clear()

    assert len(_puts_as_the_general_way_has_them(batch)) == 2


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
def test_a_batch_with_one_that_is_not_usual_is_not(make: Callable[[CreateActionRequest], object]) -> None:
    unusual = usual_request()
    make(unusual)

    assert columns_of(_batch(usual_request(), unusual, usual_request()), NOW_US) is None


def _set_labels(request: CreateActionRequest) -> None:
    request.action.meta.labels["team"] = "billing"


_UNLIKE: dict[str, Callable[[CreateActionRequest], object]] = {
    "an id, where the others have none": lambda request: setattr(request.action.meta, "id", "a"),
    "labels": _set_labels,
    "a request id": lambda request: setattr(request, "request_id", "r"),
    "a delay": lambda request: setattr(request.action.spec.schedule.delay, "seconds", 1),
    "no time, where the others have one": lambda request: request.action.spec.ClearField("schedule"),
    "the beginning of time": lambda request: set_us(request.action.spec.schedule.start_time, 0),
    "a large spec": lambda request: setattr(request.action.spec.handler, "payload", bytes(PAYLOAD_BYTES)),
}


@pytest.mark.parametrize("make", _UNLIKE.values(), ids=_UNLIKE)
def test_nor_is_one_whose_requests_are_not_alike(make: Callable[[CreateActionRequest], object]) -> None:
    unlike = usual_request()
    make(unlike)

    assert columns_of(_batch(usual_request(), unlike, usual_request()), NOW_US) is None


def test_nor_is_one_where_a_request_says_what_another_leaves_out() -> None:
    """As many values as requests, but not one for each: of another wire type, they are nothing that is known."""
    batch = _batch(usual_request(), usual_request())
    for request in batch.requests:
        request.action.spec.schedule.start_time.Clear()
    batch.requests[0].action.spec.schedule.start_time.MergeFromString(b"\x0a\x0a" + b"\xff\xff\xff\xff\x06" * 2)

    assert columns_of(batch, NOW_US) is None


@pytest.mark.parametrize("name", ["labels", "a request id", "a delay", "the beginning of time", "a large spec"])
def test_nor_is_one_whose_requests_are_alike_in_that(name: str) -> None:
    batch = _batch(usual_request(), usual_request())
    for request in batch.requests:
        _UNLIKE[name](request)

    assert columns_of(batch, NOW_US) is None


def test_nor_is_an_empty_one() -> None:
    assert columns_of(_batch(), NOW_US) is None


def test_whatever_is_sent_comes_to_the_same_either_way() -> None:
    chance = random.Random(1)
    taken_in = 0
    for _ in range(3000):
        names = chance.choice([["", "", ""], ["a", "b", "c"]])
        sound = _batch(*(_named(name, NOW_US + chance.choice([-1, 0, 1, SECOND_US])) for name in names))
        try:
            batch = BatchCreateActionsRequest.FromString(bent(chance, sound))
        except DecodeError:
            continue
        taken_in += bool(_puts_as_the_general_way_has_them(batch))

    assert 300 < taken_in < 2000


class _Day:
    """What happens at a desk: the same for the same seed, except for how batches are taken in."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.heard: list[Any] = []

    async def pass_by(self) -> None:
        chance = self._chance
        desk = Desk(batch=4, pending_items=chance.choice([6, 1000]))
        self._now_us = desk.clock.now_us()
        await desk.scheduler.batch_create(_batch(self._item("a"), self._item("b", request_id="r-b")))
        await desk.delete("a")
        desk.store.troubles.extend(chance.choices([None, *Trouble], [8, 2, 2, 2, 1], k=12))
        calls = [desk.scheduler.batch_create(self._some(), chance.choice([None, 0.0, 0.03])) for _ in range(3)]
        deletion = desk.scheduler.delete(DeleteActionRequest(id="c", allow_missing=True))
        answers = await asyncio.gather(*calls, deletion, return_exceptions=True)
        await desk.scheduler.close()
        await desk.check_invariant()
        # An error is another object each time, and the order within a batch of the store means nothing.
        self.heard = [str(answer) for answer in answers]
        self.heard += [desk.store.actions, desk.store.rows, [sorted(batch) for batch in desk.store.batches]]
        self.heard += [desk.clock.monotonic_us(), desk.ids.guid()]

    def _some(self) -> BatchCreateActionsRequest:
        chance = self._chance
        kind = chance.choice(["named", "named", "nameless", "mixed"])
        if kind == "nameless":
            return _batch(*(self._item("") for _ in range(chance.randrange(7))))
        batch = _batch(*(self._item(chance.choice("abcdefghi")) for _ in range(chance.randrange(7))))
        if kind == "mixed":
            for request in batch.requests:
                chance.choice(_MIXTURE)(request)
        return batch

    def _item(self, action_id: str, **fields: Any) -> CreateActionRequest:
        request = CreateActionRequest(**fields)
        request.action.CopyFrom(_named(action_id, self._now_us + self._chance.randrange(-5, 5)).action)
        return request


_MIXTURE: list[Callable[[CreateActionRequest], object]] = [
    lambda request: None,
    _set_labels,
    lambda request: setattr(request, "request_id", "r-b"),
    lambda request: setattr(request, "validate_only", True),
    lambda request: setattr(request.action.spec.retry, "jitter", 2),
    lambda request: request.action.spec.schedule.periodic.interval.CopyFrom(duration(SECOND_US)),
    lambda request: set_us(request.action.spec.schedule.start_time, 0),
]


def _told(seed: int) -> list[Any]:
    day = _Day(seed)
    virtual.run(day.pass_by())
    return day.heard


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_store_does_becomes_of_them_the_same_either_way(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_columns = _told(seed)
    monkeypatch.setattr(service, "columns_of", lambda *_: None)

    assert by_columns == _told(seed)


@story
async def test_what_was_on_its_way_for_too_long_was_not_done(desk: Desk) -> None:
    async def a_long_time_passes() -> None:
        desk.clock.epoch_us += CALL_RETRY_US + 1

    desk.store.meanwhile.append(a_long_time_passes)
    start_us = desk.clock.now_us()

    response = await desk.scheduler.batch_create(_batch(_named("a", start_us), _named("b", start_us)))

    assert [result.error.code for result in response.results] == [Code.UNAVAILABLE] * 2
    assert all("for too long" in result.error.message for result in response.results)
    assert desk.store.actions == {}


@story
async def test_ready_creations_and_other_calls_share_a_batch_of_the_store(desk: Desk) -> None:
    await desk.create("taken")
    desk.store.batches.clear()
    start_us = desk.clock.now_us()

    response, *_ = await asyncio.gather(
        desk.scheduler.batch_create(_batch(_named("taken", start_us), _named("a", start_us))),
        desk.create("b"),
        desk.create("c"),
    )

    assert [sorted(batch) for batch in desk.store.batches] == [["a", "b", "c", "taken"]]
    assert [result.error.code for result in response.results] == [Code.ALREADY_EXISTS, 0]
    assert set(desk.store.actions) == {"taken", "a", "b", "c"}
