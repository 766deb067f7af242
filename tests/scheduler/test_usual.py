"""A usual request comes to what the rules and the state machine make of it, and no other is taken for one."""

import random
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError

from clepsydra.core.moments import END_OF_TIME_US, SECOND_US, duration, set_us, us_of
from clepsydra.core.validation import violations_of
from clepsydra.scheduler.answers import shown
from clepsydra.scheduler.first_life import first_life
from clepsydra.scheduler.usual import usual_among, usual_life
from clepsydra.v1 import action_pb2
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from tests.fuzz.bending import bent

_NOW_US = 1_700_000_000_123_456
_GUID = "0123456789abcdef" * 2


def _usual_request(start_us: int = _NOW_US + SECOND_US) -> CreateActionRequest:
    request = CreateActionRequest()
    set_us(request.action.spec.schedule.start_time, start_us)
    handler = request.action.spec.handler
    handler.name, handler.payload, handler.content_type = "f", b"{}", "application/json"
    return request


def _is_as_the_general_way_has_it(request: CreateActionRequest) -> bool:
    """Whether it was taken in as a usual one; if so, it must be fine and come to the same."""
    [has_usual_fields] = usual_among([request])
    life = usual_life(request, "a-1", _GUID, _NOW_US) if has_usual_fields else None
    if life is None:
        return False
    assert violations_of(request) == ()
    general = first_life(request.action, "a-1", _GUID, _NOW_US)
    assert shown(life) == shown(general)
    assert life.scheduled_at_us == general.scheduled_at_us == us_of(shown(life).status.scheduled_time)
    return True


def _named(request: CreateActionRequest) -> None:
    request.request_id = "r-1"
    request.action.meta.id = "a-1"
    request.action.meta.labels["team"] = "billing"


def _without_payload(request: CreateActionRequest) -> None:
    request.action.spec.handler.ClearField("payload")
    request.action.spec.handler.ClearField("content_type")


def _without_a_time(request: CreateActionRequest) -> None:
    request.action.spec.ClearField("schedule")


def _with_a_delay(request: CreateActionRequest) -> None:
    # What is finer than a microsecond is rounded up.
    delay = request.action.spec.schedule.delay
    delay.seconds, delay.nanos = 3, 1


@pytest.mark.parametrize("change", [lambda request: None, _named, _without_payload, _without_a_time, _with_a_delay])
@pytest.mark.parametrize("start_us", [_NOW_US, _NOW_US + 1, END_OF_TIME_US - 1])
def test_a_usual_request_is_taken_in_as_the_rules_and_the_state_machine_would(
    start_us: int, change: Callable[[CreateActionRequest], None]
) -> None:
    request = _usual_request(start_us)
    change(request)

    assert _is_as_the_general_way_has_it(request)


def _start(request: CreateActionRequest, seconds: int, nanos: int) -> None:
    start = request.action.spec.schedule.start_time
    start.seconds, start.nanos = seconds, nanos


_UNUSUAL: dict[str, Callable[[CreateActionRequest], object]] = {
    "says nothing": lambda request: request.Clear(),
    "a delay that is none": lambda request: setattr(request.action.spec.schedule.delay, "nanos", -1),
    "a delay that is too long": lambda request: setattr(
        request.action.spec.schedule.delay, "seconds", 71 * 365 * 86400
    ),
    "a delay with an unknown field": lambda request: request.action.spec.schedule.delay.MergeFromString(b"\x18\x01"),
    "a time that has passed": lambda request: set_us(request.action.spec.schedule.start_time, _NOW_US - 1),
    "a time beyond the end": lambda request: set_us(request.action.spec.schedule.start_time, END_OF_TIME_US),
    "a time to be rounded": lambda request: _start(request, 1_800_000_000, 1),
    "a time that is none": lambda request: _start(request, 1_800_000_000, 1_000_000_000),
    "a negative part of a second": lambda request: _start(request, 1_800_000_000, -1000),
    "once, in so many words": lambda request: request.action.spec.schedule.once.SetInParent(),
    "periodic": lambda request: request.action.spec.schedule.periodic.interval.CopyFrom(duration(SECOND_US)),
    "a policy": lambda request: request.action.spec.retry.SetInParent(),
    "no interruption limit": lambda request: setattr(request.action.spec, "interruption_limit", 0),
    "another target": lambda request: request.action.spec.log.SetInParent(),
    "no target": lambda request: request.action.spec.ClearField("handler"),
    "no name": lambda request: request.action.spec.handler.ClearField("name"),
    "a name that is none": lambda request: setattr(request.action.spec.handler, "name", " "),
    "a content type that is none": lambda request: setattr(request.action.spec.handler, "content_type", "json"),
    "too large": lambda request: setattr(request.action.spec.handler, "payload", bytes(256 * 1024 + 1)),
    "an id that is none": lambda request: setattr(request.action.meta, "id", " "),
    "a request id that is none": lambda request: setattr(request, "request_id", " "),
    "a label that is none": lambda request: request.action.meta.labels.update({"": "x"}),
    "what the scheduler writes": lambda request: setattr(request.action.meta, "guid", "x"),
    "a status": lambda request: setattr(request.action.status, "state", action_pb2.SCHEDULED),
    "not to be written": lambda request: setattr(request, "validate_only", True),
    "an unknown field": lambda request: request.action.spec.handler.MergeFromString(b"\xf8\x06\x01"),
    "an unknown field of a time": lambda request: request.action.spec.schedule.start_time.MergeFromString(b"\x18\x01"),
}


@pytest.mark.parametrize("make", _UNUSUAL.values(), ids=_UNUSUAL)
def test_all_else_goes_the_general_way(make: Callable[[CreateActionRequest], object]) -> None:
    request = _usual_request()
    make(request)

    assert not _is_as_the_general_way_has_it(request)


def test_one_that_is_not_usual_does_not_keep_the_others_from_it() -> None:
    unusual = _usual_request()
    unusual.action.spec.retry.SetInParent()

    assert usual_among([_usual_request(), unusual, _usual_request()]) == [True, False, True]


def test_unknown_fields_that_are_nested_as_deeply_as_can_be_read_are_not_usual() -> None:
    depth = 200
    while True:
        try:
            request = CreateActionRequest.FromString(b"\x9b\x06" * depth + b"\x9c\x06" * depth)
            break
        except DecodeError:
            depth -= 1

    assert usual_among([request]) == [False]


def test_whatever_is_sent_comes_to_the_same_either_way() -> None:
    chance = random.Random(1)
    taken_as_usual = 0
    for _ in range(3000):
        sound = _usual_request(_NOW_US + chance.choice([-1, 0, 1, SECOND_US]))
        for change in (_named, _with_a_delay):
            if chance.random() < 0.5:
                change(sound)
        try:
            request = CreateActionRequest.FromString(bent(chance, sound))
        except DecodeError:
            continue
        taken_as_usual += _is_as_the_general_way_has_it(request)

    assert 300 < taken_as_usual < 2000
