"""A usual request comes to what the rules and the state machine make of it, and no other is taken for one."""

import random
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError

from clepsydra.core.moments import END_OF_TIME_US, SECOND_US, us_of
from clepsydra.core.validation import violations_of
from clepsydra.scheduler.answers import shown
from clepsydra.scheduler.first_life import first_life
from clepsydra.scheduler.usual import usual_among, usual_life
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from tests.fuzz.bending import bent
from tests.scheduler.usual_requests import NOW_US, UNUSUAL, usual_request

_GUID = "0123456789abcdef" * 2


def _is_as_the_general_way_has_it(request: CreateActionRequest) -> bool:
    """Whether it was taken in as a usual one; if so, it must be fine and come to the same."""
    [has_usual_fields] = usual_among([request])
    life = usual_life(request, "a-1", _GUID, NOW_US) if has_usual_fields else None
    if life is None:
        return False
    assert violations_of(request) == ()
    general = first_life(request.action, "a-1", _GUID, NOW_US)
    assert life.spec == general.spec
    assert life.status == general.status
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
@pytest.mark.parametrize("start_us", [0, NOW_US - 1, NOW_US, NOW_US + 1, END_OF_TIME_US - 1])
def test_ausual_request_is_taken_in_as_the_rules_and_the_state_machine_would(
    start_us: int, change: Callable[[CreateActionRequest], None]
) -> None:
    request = usual_request(start_us)
    change(request)

    assert _is_as_the_general_way_has_it(request)


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
def test_all_else_goes_the_general_way(make: Callable[[CreateActionRequest], object]) -> None:
    request = usual_request()
    make(request)

    assert not _is_as_the_general_way_has_it(request)


def test_one_that_is_not_usual_does_not_keep_the_others_from_it() -> None:
    unusual = usual_request()
    unusual.action.spec.retry.SetInParent()

    assert usual_among([usual_request(), unusual, usual_request()]) == [True, False, True]


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
        sound = usual_request(NOW_US + chance.choice([-1, 0, 1, SECOND_US]))
        for change in (_named, _with_a_delay):
            if chance.random() < 0.5:
                change(sound)
        try:
            request = CreateActionRequest.FromString(bent(chance, sound))
        except DecodeError:
            continue
        taken_as_usual += _is_as_the_general_way_has_it(request)

    assert 300 < taken_as_usual < 2000
