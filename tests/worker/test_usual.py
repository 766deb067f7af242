"""The usual attempt is begun and ended as any other: the same action, encoded in another order, comes to the same."""

import random
from itertools import product

import pytest
import structlog

from clepsydra.core.clock import SystemClock
from clepsydra.core.defaults import fill_in
from clepsydra.core.events import Accepted
from clepsydra.core.ids import Ids
from clepsydra.core.moments import DAY_US, END_OF_TIME_US, SECOND_US, timestamp
from clepsydra.core.transitions import Moment, step
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Advance, Due, Queue, Row
from clepsydra.v1.action_pb2 import Attempt as Record
from clepsydra.v1.action_pb2 import PythonHandler, Schedule, Spec, Status
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.finisher import Finisher
from clepsydra.worker.result import SUCCESS, Result, failure
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally
from clepsydra.worker.turns import Turns
from clepsydra.worker.usual import ended_at
from clepsydra.worker.writing import Writing

NOON_US = 1_767_268_800_000_000
GUID = "0123456789abcdef" * 2


def _due(queue: Queue, start_us: int, *, in_order: bool) -> Due:
    """A row that has come due, of an action whose spec is encoded in protobuf's order, or in another."""
    spec = Spec(schedule=Schedule(start_time=timestamp(start_us)), handler=PythonHandler(name="f", payload=b"{}"))
    fill_in(spec, NOON_US)
    status, at_us = step(spec, Status(), Accepted(), Moment(NOON_US))
    assert at_us is not None
    handler = Spec(handler=spec.handler)
    encoded = spec.SerializeToString() if in_order else handler.SerializeToString() + spec.SerializeToString()
    assert Spec.FromString(encoded) == spec
    action = Action("a", GUID, b"", encoded, status.SerializeToString(), at_us)
    at = {Queue.INCOMING: NOON_US, Queue.PROCESSING: at_us}[queue]
    return Due(Row(queue, 3, at, "a", GUID, at_us), action)


def _finisher(seed: int) -> Finisher:
    clock, ids = SystemClock(), Ids(random.Random(seed))
    writing = Writing(MemoryStore(1, clock), clock, ids, Tally(), ids.guid())
    return Finisher(writing, ids, 10, Tally(), structlog.get_logger())


def _begun(due: Due, now_us: int) -> tuple[Advance, Attempt]:
    taken = Turns(WorkerSettings(lease_ms=20_000), "w-1").take(due, now_us)
    assert taken.attempt is not None
    taken.attempt.started_us = now_us + 7
    return taken.advance, taken.attempt


@pytest.mark.parametrize(
    ("queue", "start_us", "late_us"),
    list(product(Queue, [NOON_US - DAY_US, NOON_US, NOON_US + DAY_US + 123_456], [0, 1, 5 * SECOND_US])),
)
def test_it_begins_alike(queue: Queue, start_us: int, late_us: int) -> None:
    now_us = max(start_us, NOON_US) + late_us
    advance, usual = _begun(_due(queue, start_us, in_order=True), now_us)
    other_advance, other = _begun(_due(queue, start_us, in_order=False), now_us)
    assert usual.planned is not None
    assert other.planned is None
    assert advance == other_advance
    assert usual.row == other.row
    assert usual.request == other.request
    assert (usual.deadline_us, usual.lease_ends_us) == (other.deadline_us, other.lease_ends_us)
    for name in usual.context.__slots__:
        assert getattr(usual.context, name) == getattr(other.context, name)


@pytest.mark.parametrize("took_us", [0, 1, 3 * SECOND_US, -DAY_US - 5 * SECOND_US, END_OF_TIME_US - NOON_US])
@pytest.mark.parametrize(
    "result", [SUCCESS, failure("no"), failure("no", retryable=False), Result(Record.INTERRUPTION, "stopped")]
)
def test_it_ends_alike_however_it_ends(result: Result, took_us: int) -> None:
    """Even where clocks go back by a day, or on to the end of time."""
    meanings = []
    for in_order in (True, False):
        _, attempt = _begun(_due(Queue.PROCESSING, NOON_US, in_order=in_order), NOON_US)
        meanings.append(_finisher(1).meaning(attempt, result, ended_at(NOON_US + took_us)))
    usual, other = meanings
    assert usual == other
    assert usual.status is not None
