"""Delays against a walk from one delay to the next, their bounds, and when an occurrence is given up."""

import random

import pytest

from clepsydra.core.action.retry import attempts_are_used_up, requested_delay_us, retry_delay_us, would_take_too_long
from clepsydra.core.action.spec import RETRY_ATTEMPTS_MAX, RETRY_DELAY_MAX_US, RETRY_MULTIPLIER_MAX
from clepsydra.core.times import HOUR_US, MINUTE_US, SECOND_US
from tests.unit.specs import NOON_US, retry_policy
from tests.unit.walks import walk_to_delay

JUST_BELOW_ONE = 1 - 2**-53


@pytest.mark.parametrize("multiplier", [1, 1.5, 2, 3.7, RETRY_MULTIPLIER_MAX])
@pytest.mark.parametrize("first_delay_us", [0, 1, SECOND_US, 2 * HOUR_US])
def test_delays_grow_as_a_walk_grows_them(multiplier: float, first_delay_us: int) -> None:
    policy = retry_policy(multiplier=multiplier, first_delay_us=first_delay_us, max_delay_us=HOUR_US)
    for failures in range(1, 100):
        # A power and a product of many factors differ in the last digits.
        assert retry_delay_us(policy, failures, 0.5) == pytest.approx(walk_to_delay(policy, failures), rel=1e-9, abs=1)


@pytest.mark.parametrize("failures", [2, 155, 1_100, RETRY_ATTEMPTS_MAX])
def test_no_number_of_failures_is_too_large(failures: int) -> None:
    policy = retry_policy(multiplier=RETRY_MULTIPLIER_MAX, first_delay_us=HOUR_US, max_delay_us=RETRY_DELAY_MAX_US)
    assert retry_delay_us(policy, failures, 0.5) == min(100 ** min(failures - 1, 9) * HOUR_US, RETRY_DELAY_MAX_US)


@pytest.mark.parametrize("failures", [1, 2, 1_025, RETRY_ATTEMPTS_MAX])
def test_a_first_delay_of_zero_stays_zero_however_often_it_is_multiplied(failures: int) -> None:
    assert retry_delay_us(retry_policy(first_delay_us=0, jitter=1), failures, 0.9) == 0


@pytest.mark.parametrize("jitter", [0, 0.1, 0.5, 1])
def test_jitter_reaches_as_far_as_it_says_to_both_sides_and_no_further(jitter: float) -> None:
    policy = retry_policy(first_delay_us=MINUTE_US, jitter=jitter)
    assert retry_delay_us(policy, 1, 0) == round(MINUTE_US * (1 - jitter))
    assert retry_delay_us(policy, 1, 0.5) == MINUTE_US
    assert retry_delay_us(policy, 1, JUST_BELOW_ONE) == round(MINUTE_US * (1 + jitter))
    chance = random.Random(1)
    for _ in range(1_000):
        delay_us = retry_delay_us(policy, 1, chance.random())
        assert round(MINUTE_US * (1 - jitter)) <= delay_us <= round(MINUTE_US * (1 + jitter))


def test_jitter_spreads_the_longest_delay_too() -> None:
    policy = retry_policy(max_delay_us=MINUTE_US, jitter=0.5)
    assert retry_delay_us(policy, 50, 0) == MINUTE_US // 2
    assert retry_delay_us(policy, 50, 0.75) == MINUTE_US + MINUTE_US // 4


def test_a_longest_delay_below_the_first_one_wins() -> None:
    assert retry_delay_us(retry_policy(first_delay_us=HOUR_US, max_delay_us=MINUTE_US), 1, 0.5) == MINUTE_US


def test_a_wish_is_held_between_now_and_the_longest_delay_that_a_user_may_ask_for() -> None:
    wishes_us = (-1, 0, 1, RETRY_DELAY_MAX_US, RETRY_DELAY_MAX_US + 1, 2**80)
    expected_us = [0, 0, 1, RETRY_DELAY_MAX_US, RETRY_DELAY_MAX_US, RETRY_DELAY_MAX_US]
    assert [requested_delay_us(wish_us) for wish_us in wishes_us] == expected_us


@pytest.mark.parametrize(
    ("max_attempts", "failures", "used_up"),
    [(0, 1, False), (0, RETRY_ATTEMPTS_MAX, False), (1, 1, True), (3, 2, False), (3, 3, True), (3, 4, True)],
)
def test_attempts_are_counted_with_the_first_and_zero_is_unlimited(
    max_attempts: int, failures: int, used_up: bool
) -> None:
    assert attempts_are_used_up(retry_policy(max_attempts=max_attempts), failures) is used_up


def test_a_retry_at_the_very_end_of_the_policys_time_is_still_planned() -> None:
    policy = retry_policy(max_elapsed_us=MINUTE_US)
    assert not would_take_too_long(policy, NOON_US, NOON_US + MINUTE_US)
    assert would_take_too_long(policy, NOON_US, NOON_US + MINUTE_US + 1)
    assert not would_take_too_long(retry_policy(), NOON_US, NOON_US + 1000 * HOUR_US)
