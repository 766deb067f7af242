"""Creations of a batch: each has its own outcome, whatever the store does, with the fast path and without."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from google.rpc.code_pb2 import Code

from clepsydra.core import lifecycle
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import SECOND_US, duration, set_us
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest, DeleteActionRequest
from tests.scheduler.desk import Desk, Trouble, story
from tests.simulation import loop as virtual
from tests.unit.fastpath.common_requests import NOW_US, common_request


def _batch(*requests: CreateActionRequest) -> BatchCreateActionsRequest:
    return BatchCreateActionsRequest(requests=requests)


def _named(action_id: str, start_us: int = NOW_US + SECOND_US) -> CreateActionRequest:
    request = common_request(start_us)
    request.action.meta.id = action_id
    return request


def _set_labels(request: CreateActionRequest) -> None:
    request.action.meta.labels["team"] = "billing"


class _Day:
    """What happens at a desk: the same for the same seed, except for how creations are planned."""

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
def test_whatever_the_store_does_becomes_of_them_the_same_without_the_fast_path(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_fast_path = _told(seed)
    monkeypatch.setattr(lifecycle, "fastpath", None)

    assert with_fast_path == _told(seed)


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
async def test_creations_of_a_batch_and_single_ones_share_a_batch_of_the_store(desk: Desk) -> None:
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
