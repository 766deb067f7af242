"""The encoded spec and status are the state machine's, byte for byte, and nothing else is recognised as such."""

import random
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core.action.events import Accepted, Began, Failed, Interrupted, Paused, RunRequested, Succeeded
from clepsydra.core.action.spec import RETENTION_AFTER_SUCCESS_DEFAULT_US, fill_in
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.core.fastpath import bytes_of_action
from clepsydra.core.times import END_OF_TIME_US, SECOND_US, duration, timestamp
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
    assert bytes_of_action.encode_spec(bytes_of_action.encode_time(start_us), handler.SerializeToString()) == encoded
    assert bytes_of_action.handler_in(encoded) == handler.SerializeToString()
    at = bytes_of_action.encode_time(max(start_us, now_us))
    assert bytes_of_action.encode_waiting_status(at) == status.SerializeToString()
    assert bytes_of_action.waiting_time(status.SerializeToString()) == at


@given(_times, _times, st.text(min_size=1, max_size=60), st.text(min_size=1, max_size=300))
def test_a_success_is_encoded_as_the_state_machine_writes_it(
    start_us: int, took_us: int, attempt_id: str, worker: str
) -> None:
    spec, status = _accepted(PythonHandler(name="f"), start_us, start_us)
    ended_us = min(start_us + took_us, END_OF_TIME_US - RETENTION_AFTER_SUCCESS_DEFAULT_US - 1)
    began = step(spec, status, Began(30 * SECOND_US, 5 * SECOND_US), Moment(start_us, start_us))
    record = Attempt(number=1, id=attempt_id, worker=worker, outcome=Attempt.SUCCESS)
    record.start_time.CopyFrom(timestamp(start_us))
    record.end_time.CopyFrom(timestamp(ended_us))
    after = step(spec, status, Succeeded(record), Moment(ended_us, began.at_us))
    if after.at_us != ended_us + RETENTION_AFTER_SUCCESS_DEFAULT_US:
        return  # its row lies there, or it was planned for later than that: then the state machine plans it
    start = bytes_of_action.encode_time(start_us)
    after_id = bytes_of_action.encode_after_id(worker.encode(), start, bytes_of_action.encode_time(ended_us))
    attempt = bytes_of_action.encode_first_success(attempt_id.encode(), after_id)
    assert attempt == record.SerializeToString()
    assert (
        bytes_of_action.encode_success_status(start, attempt, bytes_of_action.encode_time(after.at_us))
        == after.status.SerializeToString()
    )


def _another_target(spec: Spec) -> None:
    spec.http.url = "http://127.0.0.1/"
    # Were only the end of the spec looked at, this one would pass.
    spec.http.body = bytes_of_action.encode_spec(bytes_of_action.encode_time(NOON_US), b"")


UNCOMMON: list[Callable[[Spec], object]] = [
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


@pytest.mark.parametrize("change", UNCOMMON)
def test_a_spec_that_says_anything_else_is_not_recognised(change: Callable[[Spec], object]) -> None:
    spec, _ = _accepted(PythonHandler(name="f", payload=b"{}"), NOON_US, NOON_US)
    assert bytes_of_action.handler_in(spec.SerializeToString()) is not None
    change(spec)
    assert bytes_of_action.handler_in(spec.SerializeToString()) is None


def test_a_status_that_says_anything_else_is_not_recognised() -> None:
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
        assert bytes_of_action.waiting_time(status.SerializeToString()) is None


def test_what_cannot_be_decoded_is_not_recognised() -> None:
    """Though all that is compared is as it should be."""
    broken = b"\x08"
    assert bytes_of_action.handler_in(bytes_of_action.encode_spec(broken, b"")) is None
    assert bytes_of_action.waiting_time(bytes_of_action.encode_waiting_status(broken)) is None


def test_whatever_is_recognised_means_what_it_is_taken_for() -> None:
    """Bytes that were bent at random are refused, or mean the same as what they are taken for."""
    rng, taken = random.Random(11), 0
    for n in range(4000):
        spec, waits = _accepted(PythonHandler(name="f", payload=b"p" * (n % 300)), NOON_US, NOON_US)
        encoded = bent(rng, spec)
        handler = bytes_of_action.handler_in(encoded)
        if handler is not None:
            taken += 1
            try:
                read, expected = Spec.FromString(encoded), Spec.FromString(handler_only(handler))
            except DecodeError:
                continue  # the handler itself cannot be decoded
            fill_in(expected, NOON_US)
            expected.schedule.start_time.CopyFrom(read.schedule.start_time)
            assert read == expected
        status = bent(rng, waits)
        at = bytes_of_action.waiting_time(status)
        if at is not None:
            assert status == bytes_of_action.encode_waiting_status(at)
    assert taken > 100


def handler_only(handler: bytes) -> bytes:
    spec = Spec()
    spec.handler.ParseFromString(handler)
    return spec.SerializeToString()
