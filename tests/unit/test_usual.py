"""The usual life is what the state machine makes of it, byte for byte, and no other life is taken for one."""

import random
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core import usual
from clepsydra.core.defaults import fill_in
from clepsydra.core.events import Accepted, Began, Failed, Interrupted, Paused, RunRequested, Succeeded
from clepsydra.core.moments import END_OF_TIME_US, SECOND_US, duration, timestamp
from clepsydra.core.transitions import Moment, step
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, PythonHandler, Schedule, Spec, Status
from tests.fuzz.bending import bent
from tests.unit.specs import NOON_US

_times = st.integers(0, END_OF_TIME_US - 1)
_handlers = st.builds(
    PythonHandler, name=st.text(max_size=40), payload=st.binary(max_size=20_000), content_type=st.text(max_size=200)
)


def _accepted(handler: PythonHandler, start_us: int, now_us: int) -> tuple[Spec, Status]:
    """By the rules and the state machine."""
    spec = Spec(schedule=Schedule(start_time=timestamp(start_us)), handler=handler)
    fill_in(spec, now_us)
    return spec, step(spec, Status(), Accepted(), Moment(now_us)).status


@given(_handlers, _times, _times)
def test_a_spec_and_its_first_status_are_as_they_are_accepted(
    handler: PythonHandler, start_us: int, now_us: int
) -> None:
    spec, status = _accepted(handler, start_us, now_us)
    encoded = spec.SerializeToString()
    assert usual.spec_of(usual.encoded_time(start_us), handler.SerializeToString()) == encoded
    assert usual.handler_in(encoded) == handler.SerializeToString()
    at = usual.encoded_time(max(start_us, now_us))
    assert usual.planned(at) == status.SerializeToString()
    assert usual.planned_time(status.SerializeToString()) == at


@given(_times, _times, st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=300))
def test_a_success_is_recorded_as_the_state_machine_does_it(
    start_us: int, took_us: int, attempt_id: str, worker: str
) -> None:
    spec, status = _accepted(PythonHandler(name="f"), start_us, start_us)
    ended_us = min(start_us + took_us, END_OF_TIME_US - usual.KEPT_US - 1)
    began = step(spec, status, Began(30 * SECOND_US, 5 * SECOND_US), Moment(start_us, start_us))
    record = Attempt(number=1, id=attempt_id, worker=worker, outcome=Attempt.SUCCESS)
    record.start_time.CopyFrom(timestamp(start_us))
    record.end_time.CopyFrom(timestamp(ended_us))
    after = step(spec, status, Succeeded(record), Moment(ended_us, began.at_us))
    if after.at_us != ended_us + usual.KEPT_US:
        return  # its row lies there, or it was planned for later than that: nobody asks for the short way then
    start = usual.encoded_time(start_us)
    course = usual.course_of(worker.encode(), start, usual.encoded_time(ended_us))
    attempt = usual.first_success(attempt_id.encode(), course)
    assert attempt == record.SerializeToString()
    assert usual.succeeded(start, attempt, usual.encoded_time(after.at_us)) == after.status.SerializeToString()


def _another_target(spec: Spec) -> None:
    spec.http.url = "http://127.0.0.1/"
    # Were only the end of the spec looked at, this one would pass.
    spec.http.body = usual.spec_of(usual.encoded_time(NOON_US), b"")


UNUSUAL: list[Callable[[Spec], object]] = [
    lambda spec: spec.retry.ClearField("jitter"),
    lambda spec: spec.ClearField("retry"),
    lambda spec: spec.attempt_timeout.CopyFrom(duration(SECOND_US)),
    lambda spec: spec.start_deadline.CopyFrom(duration(SECOND_US)),
    lambda spec: spec.retention.after_success.CopyFrom(duration(0)),
    lambda spec: spec.ClearField("interruption_limit"),
    lambda spec: spec.schedule.periodic.interval.CopyFrom(duration(SECOND_US)),
    lambda spec: spec.schedule.ClearField("start_time"),
    lambda spec: spec.schedule.delay.CopyFrom(duration(SECOND_US)),
    lambda spec: spec.ClearField("schedule"),
    lambda spec: spec.ClearField("handler"),
    lambda spec: spec.log.SetInParent(),
    lambda spec: spec.MergeFromString(b"\xf8\x07\x01"),
    lambda spec: spec.Clear(),
    _another_target,
]


@pytest.mark.parametrize("change", UNUSUAL)
def test_a_spec_that_says_anything_else_is_not_usual(change: Callable[[Spec], object]) -> None:
    spec, _ = _accepted(PythonHandler(name="f", payload=b"{}"), NOON_US, NOON_US)
    assert usual.handler_in(spec.SerializeToString()) is not None
    change(spec)
    assert usual.handler_in(spec.SerializeToString()) is None


def test_a_status_that_says_anything_else_is_not_usual() -> None:
    spec, waits = _accepted(PythonHandler(name="f"), NOON_US, NOON_US)
    attempt = Attempt(number=1, id="g-1", worker="w")
    # A row that was planned for noon and lies at the end of its attempt's lease.
    ended = Moment(NOON_US + SECOND_US, NOON_US + 35 * SECOND_US)
    later = [
        step(spec, waits, Succeeded(attempt), ended),
        step(spec, waits, Failed(attempt), ended),
        step(spec, waits, Interrupted(attempt), ended),
        step(spec, waits, Paused(), Moment(NOON_US)),
        step(spec, step(spec, waits, Failed(attempt), ended).status, RunRequested(), Moment(NOON_US + 9)),
    ]
    removable = Status()
    removable.CopyFrom(waits)
    removable.removable_time.CopyFrom(timestamp(NOON_US))
    for status in [*(after.status for after in later), removable, Status(), Status(state=action_pb2.SCHEDULED)]:
        assert usual.planned_time(status.SerializeToString()) is None


def test_what_cannot_be_decoded_is_not_usual() -> None:
    """Though all that is compared is as it should be."""
    broken = b"\x08"
    assert usual.handler_in(usual.spec_of(broken, b"")) is None
    assert usual.planned_time(usual.planned(broken)) is None


def test_whatever_is_taken_for_usual_says_what_the_usual_says() -> None:
    """Bytes that were bent at random are refused, or mean the same as what they are taken for."""
    rng, taken = random.Random(11), 0
    for n in range(4000):
        spec, waits = _accepted(PythonHandler(name="f", payload=b"p" * (n % 300)), NOON_US, NOON_US)
        encoded = bent(rng, spec)
        handler = usual.handler_in(encoded)
        if handler is not None:
            taken += 1
            try:
                read, expected = Spec.FromString(encoded), Spec.FromString(handler_only(handler))
            except DecodeError:
                continue  # whoever reads the handler finds out
            fill_in(expected, NOON_US)
            expected.schedule.start_time.CopyFrom(read.schedule.start_time)
            assert read == expected
        status = bent(rng, waits)
        at = usual.planned_time(status)
        if at is not None:
            assert status == usual.planned(at)
    assert taken > 100


def handler_only(handler: bytes) -> bytes:
    spec = Spec()
    spec.handler.ParseFromString(handler)
    return spec.SerializeToString()
