"""What a spec means where it says nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from clepsydra.core.action import spec as action_spec
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US, duration, duration_us, timestamp, us_of
from clepsydra.core.validation.requests import spec_violations
from clepsydra.v1.action_pb2 import HttpRequest, LogLine, Periodic, Retention, RetryPolicy, Schedule, Spec
from tests.unit.specs import filled_in

# 2026-01-01T12:00:00Z
NOON_US = 1_767_268_800 * SECOND_US


def test_an_empty_spec_gets_every_default() -> None:
    spec = filled_in(Spec(), NOON_US)

    assert us_of(spec.schedule.start_time) == NOON_US
    assert spec.schedule.WhichOneof("recurrence") == "once"
    assert duration_us(spec.attempt_timeout) == action_spec.ATTEMPT_TIMEOUT_DEFAULT_US
    assert duration_us(spec.retry.first_delay) == action_spec.RETRY_FIRST_DELAY_DEFAULT_US
    assert spec.retry.multiplier == action_spec.RETRY_MULTIPLIER_DEFAULT
    assert duration_us(spec.retry.max_delay) == action_spec.RETRY_MAX_DELAY_DEFAULT_US
    assert spec.retry.jitter == action_spec.RETRY_JITTER_DEFAULT
    assert spec.retry.max_attempts == action_spec.RETRY_MAX_ATTEMPTS_DEFAULT
    assert duration_us(spec.retention.after_success) == action_spec.RETENTION_AFTER_SUCCESS_DEFAULT_US
    assert duration_us(spec.retention.after_failure) == action_spec.RETENTION_AFTER_FAILURE_DEFAULT_US
    assert spec.interruption_limit == action_spec.INTERRUPTION_LIMIT_DEFAULT


def test_what_has_no_default_stays_open() -> None:
    spec = filled_in(Spec(log=LogLine(message="x")), NOON_US)

    assert not spec.HasField("start_deadline")
    assert not spec.retry.HasField("max_elapsed")
    assert spec.log.message == "x"


def test_the_spec_that_was_given_is_left_as_it_is() -> None:
    given = Spec(schedule=Schedule(delay=duration(SECOND_US)), log=LogLine())
    before = given.SerializeToString(deterministic=True)

    filled_in(given, NOON_US)

    assert given.SerializeToString(deterministic=True) == before


def test_a_delay_becomes_the_start_time_that_it_comes_to() -> None:
    schedule = filled_in(Spec(schedule=Schedule(delay=duration(90 * SECOND_US))), NOON_US).schedule

    assert schedule.WhichOneof("start") == "start_time"
    assert us_of(schedule.start_time) == NOON_US + 90 * SECOND_US


def test_a_start_time_stays_even_if_it_has_passed() -> None:
    schedule = filled_in(Spec(schedule=Schedule(start_time=timestamp(5))), NOON_US).schedule

    assert us_of(schedule.start_time) == 5


def test_a_period_is_a_fixed_rate_unless_it_is_said_to_drift() -> None:
    def mode_of(given: Periodic.Mode) -> Periodic.Mode:
        periodic = Periodic(interval=duration(HOUR_US), mode=given)
        return filled_in(Spec(schedule=Schedule(periodic=periodic)), NOON_US).schedule.periodic.mode

    assert mode_of(Periodic.MODE_UNSPECIFIED) == Periodic.FIXED_RATE
    assert mode_of(Periodic.FIXED_RATE) == Periodic.FIXED_RATE
    assert mode_of(Periodic.DRIFT) == Periodic.DRIFT


@pytest.mark.parametrize(
    ("given", "method"),
    [
        (HttpRequest(), "GET"),
        (HttpRequest(body=b"x"), "POST"),
        (HttpRequest(method="PUT", body=b"x"), "PUT"),
        (HttpRequest(method="HEAD"), "HEAD"),
    ],
)
def test_a_body_is_posted_unless_a_method_is_given(given: HttpRequest, method: str) -> None:
    assert filled_in(Spec(http=given), NOON_US).http.method == method


@pytest.mark.parametrize(
    "given",
    [
        Spec(attempt_timeout=duration(MINUTE_US // 7)),
        Spec(retry=RetryPolicy(first_delay=duration(1), max_delay=duration(2))),
        Spec(retry=RetryPolicy(multiplier=1.5, jitter=0, max_attempts=0, max_elapsed=duration(5))),
        Spec(retention=Retention(after_success=duration(0), after_failure=duration(0))),
        Spec(retention=Retention(after_success=duration(3 * DAY_US))),
        Spec(interruption_limit=0),
        Spec(start_deadline=duration(5)),
    ],
)
def test_what_is_given_is_kept_to_the_last_digit(given: Spec) -> None:
    """Zero included: it is not the same as nothing."""
    filled = filled_in(given, NOON_US)

    assert set(leaves(given)) <= set(leaves(filled))
    assert filled_in(filled, NOON_US + 1) == filled


def leaves(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """What is set in a message; a duration is one value, not two numbers."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name == "Duration":
            yield f"{path}.{field.name}", repr(value)
        else:
            yield from leaves(value, f"{path}.{field.name}")


def test_one_delay_that_is_given_moves_the_default_of_the_other() -> None:
    long = filled_in(Spec(retry=RetryPolicy(first_delay=duration(DAY_US))), NOON_US).retry
    short = filled_in(Spec(retry=RetryPolicy(max_delay=duration(SECOND_US // 2))), NOON_US).retry

    assert duration_us(long.max_delay) == DAY_US
    assert duration_us(short.first_delay) == SECOND_US // 2


def test_what_was_filled_in_is_valid() -> None:
    assert spec_violations(filled_in(Spec(log=LogLine()), NOON_US)) == ()
