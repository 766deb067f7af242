"""Begins and ends come to the same with the fast path and without: the same advances, attempts and bytes."""

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core import fastpath, lifecycle
from clepsydra.core.action.attempt import SUCCESS, Attempt, Result
from clepsydra.core.action.creation import accept
from clepsydra.core.lifecycle import end_time_us, plan_begins, plan_ends
from clepsydra.core.plan import Begin, BeginTerms
from clepsydra.core.tables import Action, Due, Queue, Row
from clepsydra.core.times import DAY_US, END_OF_TIME_US, MINUTE_US, SECOND_US, duration, timestamp
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import HttpRequest, Periodic, PythonHandler, Retention, Schedule, Spec

NOON_US = 1_767_268_800_000_000
GUID = "0123456789abcdef" * 2
TERMS = BeginTerms("w-1", 20 * SECOND_US, 5 * SECOND_US, MINUTE_US)

RESULTS = [
    SUCCESS,
    Result(action_pb2.Attempt.FAILURE, "no"),
    Result(action_pb2.Attempt.FAILURE, "no", retryable=False),
    Result(action_pb2.Attempt.FAILURE, "later", retry_after_us=SECOND_US),
    Result(action_pb2.Attempt.TIMEOUT, "too long"),
    Result(action_pb2.Attempt.INTERRUPTION, "stopped"),
]


def _due(queue: Queue, spec: Spec, *, moved_by_us: int = 0) -> Due:
    """The row of an action that was accepted at noon. One that has moved belongs to an attempt."""
    spec = Spec.FromString(spec.SerializeToString())
    status, at_us = accept(spec, NOON_US)
    action = Action("a", GUID, b"", spec.SerializeToString(), status.SerializeToString(), at_us)
    row_at_us = at_us + moved_by_us
    at = {Queue.INCOMING: NOON_US, Queue.PROCESSING: row_at_us}[queue]
    return Due(Row(queue, 3, at, "a", GUID, row_at_us), action)


def _common(start_us: int = NOON_US) -> Spec:
    return Spec(schedule=Schedule(start_time=timestamp(start_us)), handler=PythonHandler(name="f", payload=b"{}"))


def _facts(begin: Begin) -> dict[str, Any]:
    """All that there is to know of a begin."""
    names = [name for name in Attempt.__slots__ if not name.startswith("_")]
    attempt = None if begin.attempt is None else {name: getattr(begin.attempt, name) for name in names}
    decoded = None if begin.attempt is None else (begin.attempt.spec, begin.attempt.status, begin.attempt.id)
    return {"advance": begin.advance, "decision": begin.decision, "attempt": attempt, "decoded": decoded}


def _both_ways(due: Due, now_us: int) -> tuple[Begin, Begin]:
    with pytest.MonkeyPatch.context() as patch:
        [fast] = plan_begins([due], now_us, TERMS)
        patch.setattr(lifecycle, "fastpath", None)
        [general] = plan_begins([due], now_us, TERMS)
    return fast, general


@pytest.mark.parametrize(
    ("queue", "start_us", "late_us"),
    list(product(Queue, [NOON_US - DAY_US, NOON_US, NOON_US + DAY_US + 123_456], [0, 1, 5 * SECOND_US])),
)
def test_a_common_action_begins_alike(queue: Queue, start_us: int, late_us: int) -> None:
    now_us = max(start_us, NOON_US) + late_us
    due = _due(queue, _common(start_us))
    fast, general = _both_ways(due, now_us)

    assert fastpath.plan_begins([due], now_us, TERMS) != [None]
    assert _facts(fast) == _facts(general)


UNCOMMON = {
    "another target": Spec(http=HttpRequest(url="http://127.0.0.1/")),
    "periodic": Spec(schedule=Schedule(periodic=Periodic(interval=duration(SECOND_US))), handler={"name": "f"}),
    "another timeout": Spec(attempt_timeout=duration(SECOND_US), handler=PythonHandler(name="f")),
    "another retention": Spec(retention=Retention(after_success=duration(SECOND_US)), handler=PythonHandler(name="f")),
    "a start deadline": Spec(start_deadline=duration(SECOND_US), handler=PythonHandler(name="f")),
}


@pytest.mark.parametrize("spec", UNCOMMON.values(), ids=UNCOMMON)
def test_every_other_action_is_left_to_the_general_way(spec: Spec) -> None:
    assert fastpath.plan_begins([_due(Queue.PROCESSING, spec)], NOON_US, TERMS) == [None]


def test_so_is_a_row_whose_attempt_was_interrupted() -> None:
    due = _due(Queue.PROCESSING, _common(), moved_by_us=SECOND_US)

    assert fastpath.plan_begins([due], NOON_US + SECOND_US, TERMS) == [None]


@pytest.mark.parametrize("took_us", [0, 1, 3 * SECOND_US, -DAY_US - 5 * SECOND_US, END_OF_TIME_US - NOON_US])
@pytest.mark.parametrize("result", RESULTS)
def test_it_ends_alike_however_it_ends(result: Result, took_us: int) -> None:
    """Even where clocks go back by a day, or on to the end of time."""
    ended_us = end_time_us(NOON_US + took_us)
    advances = []
    for begin in _both_ways(_due(Queue.PROCESSING, _common()), NOON_US):
        assert begin.attempt is not None
        begin.attempt.started_us = NOON_US + 7
        advances += plan_ends([(begin.attempt, result, 0.25)], ended_us)

    assert advances[0] == advances[1]
    assert advances[0].status is not None


def _random_spec(chance: random.Random) -> Spec:
    spec = _common(NOON_US + chance.choice([0, SECOND_US]))
    if chance.random() < 0.5:
        spec.CopyFrom(chance.choice(list(UNCOMMON.values())))
    spec.handler.payload = (
        chance.randbytes(chance.choice([0, 1, 127, 128, 20_000])) if spec.HasField("handler") else b""
    )
    if chance.random() < 0.3:
        spec.retry.max_attempts = chance.randrange(3)
    return spec


@given(st.integers(0, 2**32))
def test_generated_actions_begin_and_end_alike(seed: int) -> None:
    chance = random.Random(seed)
    due = _due(chance.choice(list(Queue)), _random_spec(chance), moved_by_us=chance.choice([0, 0, SECOND_US]))
    fast, general = _both_ways(due, due.row.scheduled_at_us + chance.randrange(2 * SECOND_US))
    assert _facts(fast) == _facts(general)
    if fast.attempt is None or general.attempt is None:
        return
    result, took_us = chance.choice(RESULTS), chance.randrange(10 * SECOND_US)
    ended_us = end_time_us(due.row.scheduled_at_us + took_us)
    for attempt in (fast.attempt, general.attempt):
        attempt.started_us = due.row.scheduled_at_us
    ended = [plan_ends([(attempt, result, 0.25)], ended_us) for attempt in (fast.attempt, general.attempt)]

    assert ended[0] == ended[1]
