"""A creation that the fast path plans comes to what the general way makes of it; every other goes the general way."""

import random
from collections.abc import Callable, Sequence

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from clepsydra.core import fastpath, lifecycle
from clepsydra.core.action.creation import action_id_of, new_action
from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.tables import Action
from clepsydra.core.times import END_OF_TIME_US, SECOND_US, set_us
from clepsydra.core.validation.requests import violations_of
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest
from tests.fuzz.bending import bent
from tests.fuzz.sound import Requests
from tests.unit.fastpath.common_requests import NOW_US, UNCOMMON, common_request

_GENERATED = "generated"


def _guid(number: int) -> str:
    return f"{number:032x}"


def _planned(requests: Sequence[CreateActionRequest]) -> list[Action | None]:
    """What the fast path plans; all of it must be valid, and the same bytes as the general way's."""
    count = len(requests)
    generated, guids = [f"{_GENERATED}-{n}" for n in range(count)], [_guid(n) for n in range(count)]
    planned = fastpath.plan_creations(requests, generated, guids, NOW_US)
    for request, action, generated_id, guid in zip(requests, planned, generated, guids, strict=True):
        if action is not None:
            assert violations_of(request) == ()
            assert action == new_action(request.action, action_id_of(request, generated_id), guid, NOW_US)
    return planned


def _are_all_planned(requests: Sequence[CreateActionRequest]) -> bool:
    return None not in _planned(requests)


def _named(request: CreateActionRequest) -> None:
    request.request_id = "r-1"
    request.action.meta.id = "a-1"


def _labelled(request: CreateActionRequest) -> None:
    request.action.meta.labels.update({"team": "billing", "a": "1", "user": "42"})


def _repeatable(request: CreateActionRequest) -> None:
    request.request_id = "r-1"


def _without_payload(request: CreateActionRequest) -> None:
    request.action.spec.handler.ClearField("payload")
    request.action.spec.handler.ClearField("content_type")


def _without_a_time(request: CreateActionRequest) -> None:
    request.action.spec.ClearField("schedule")


def _with_a_delay(request: CreateActionRequest) -> None:
    # What is finer than a microsecond is rounded up.
    delay = request.action.spec.schedule.delay
    delay.seconds, delay.nanos = 3, 1


COMMON = [lambda request: None, _named, _labelled, _repeatable, _without_payload, _without_a_time, _with_a_delay]


@pytest.mark.parametrize("change", COMMON)
@pytest.mark.parametrize("start_us", [0, NOW_US - 1, NOW_US, NOW_US + 1, END_OF_TIME_US - 1])
def test_a_common_request_is_planned_as_the_rules_and_the_state_machine_would(
    start_us: int, change: Callable[[CreateActionRequest], None]
) -> None:
    request = common_request(start_us)
    change(request)

    assert _are_all_planned([request])


@pytest.mark.parametrize("change", COMMON)
@pytest.mark.parametrize("how_many", [1, 3])
def test_so_is_a_batch_some_or_all_of_whose_requests_differ_in_that(
    change: Callable[[CreateActionRequest], None], how_many: int
) -> None:
    requests = [common_request() for _ in range(3)]
    for request in requests[:how_many]:
        change(request)

    assert _are_all_planned(requests)


@pytest.mark.parametrize("make", UNCOMMON.values(), ids=UNCOMMON)
def test_all_else_goes_the_general_way(make: Callable[[CreateActionRequest], object]) -> None:
    request = common_request()
    make(request)

    assert _planned([request]) == [None]


@pytest.mark.parametrize("make", UNCOMMON.values(), ids=UNCOMMON)
def test_one_that_does_leaves_the_others_of_its_batch_where_they_are(
    make: Callable[[CreateActionRequest], object],
) -> None:
    uncommon = common_request()
    make(uncommon)

    assert [action is None for action in _planned([common_request(), uncommon, common_request()])] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "starts_us",
    [
        [SECOND_US + 1, NOW_US, END_OF_TIME_US - 1],
        [1_800_000_000 * SECOND_US] * 3,
        [1_800_000_000 * SECOND_US, 1_800_000_000 * SECOND_US + 1, 1_800_000_001 * SECOND_US],
        [0, 0, 1],
    ],
    ids=["parts of seconds", "whole seconds", "some are whole", "the beginning of time"],
)
@pytest.mark.parametrize("are_named", [True, False])
def test_a_batch_is_planned_whatever_its_times(starts_us: list[int], are_named: bool) -> None:
    requests = [common_request(at_us) for at_us in starts_us]
    for n, request in enumerate(requests):
        request.action.meta.id = f"a{n}" if are_named else ""
    requests[1].action.spec.handler.ClearField("payload")
    requests[2].action.spec.handler.ClearField("content_type")

    assert _are_all_planned(requests)


def test_a_payload_of_the_greatest_size_is_planned() -> None:
    large = common_request()
    large.action.spec.handler.payload = bytes(PAYLOAD_BYTES)

    assert _are_all_planned([common_request(), large])


def test_a_value_that_one_request_has_twice_is_not_taken_for_anothers() -> None:
    """As many values as requests, but not one for each: in another wire type, they are unknown fields."""
    requests = [common_request(), common_request()]
    for request in requests:
        request.action.spec.schedule.start_time.Clear()
    requests[0].action.spec.schedule.start_time.MergeFromString(b"\x0a\x0a" + b"\xff\xff\xff\xff\x06" * 2)

    assert _planned(requests)[0] is None


def test_unknown_fields_that_are_nested_as_deeply_as_can_be_parsed_go_the_general_way() -> None:
    depth = 200
    while True:
        try:
            request = CreateActionRequest.FromString(b"\x9b\x06" * depth + b"\x9c\x06" * depth)
            break
        except DecodeError:
            depth -= 1
    request.action.spec.handler.name = "f"

    assert _planned([request, request]) == [None, None]


def test_no_requests_are_no_actions() -> None:
    assert _planned([]) == []


def test_whatever_is_sent_comes_to_the_same_either_way() -> None:
    chance = random.Random(1)
    fast = general = 0
    for _ in range(3000):
        names = chance.choice([["", "", ""], ["a", "b", "c"], [""], ["a"]])
        sound = BatchCreateActionsRequest()
        for name in names:
            request = sound.requests.add()
            request.CopyFrom(common_request(NOW_US + chance.choice([-1, 0, 1, SECOND_US])))
            request.action.meta.id = name
            for change in (_labelled, _repeatable, _with_a_delay):
                if chance.random() < 0.2:
                    change(request)
        try:
            requests = list(BatchCreateActionsRequest.FromString(bent(chance, sound)).requests)
        except DecodeError:
            continue
        planned = _planned(requests)
        general += planned.count(None)
        fast += len(planned) - planned.count(None)

    assert fast > 1000
    assert general > 1000


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_generated_requests_of_every_kind_come_to_the_same_with_the_fast_path_and_without(
    seed: int, count: int
) -> None:
    chance = random.Random(seed)
    sound = Requests(chance, {})
    requests = [
        sound.to("CreateAction") if chance.random() < 0.5 else common_request(NOW_US + chance.randrange(-5, 5))
        for _ in range(count)
    ]
    generated, guids = [f"{_GENERATED}-{n}" for n in range(count)], [_guid(n) for n in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        fast = lifecycle.plan_creations(requests, generated, guids, NOW_US)  # type: ignore[arg-type]
        patch.setattr(lifecycle, "fastpath", None)
        general = lifecycle.plan_creations(requests, generated, guids, NOW_US)  # type: ignore[arg-type]

    assert fast == general


def test_a_time_to_the_nanosecond_is_left_to_the_general_way() -> None:
    request = common_request()
    set_us(request.action.spec.schedule.start_time, NOW_US)
    request.action.spec.schedule.start_time.nanos += 1

    assert _planned([request, common_request()])[0] is None
