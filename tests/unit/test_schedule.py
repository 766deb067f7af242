"""The arithmetic of schedules against a walk from one occurrence to the next, and where no walk could go."""

import random

import pytest

from clepsydra.core.action.schedule import Next, first_occurrence, next_occurrence, resumed_occurrence, retry_gives_way
from clepsydra.core.action.spec import INTERVAL_MAX_US, INTERVAL_MIN_US
from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, MINUTE_US, SECOND_US, YEAR_US
from clepsydra.v1.action_pb2 import Periodic, Schedule
from tests.unit.specs import NOON_US, drift, fixed_rate, once
from tests.unit.walks import walk_to_first, walk_to_next


def _any_schedule(chance: random.Random) -> Schedule:
    start_us = NOON_US + chance.randrange(-100, 100)
    if chance.random() < 0.1:
        return once(start_us)
    # Small numbers, so that edges meet often.
    return chance.choice((fixed_rate, drift))(
        chance.randrange(1, 30),
        start_us=start_us,
        end_us=chance.choice((None, start_us + chance.randrange(200))),
        max_runs=chance.choice((0, 1, 3)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_first_occurrence_is_the_one_that_a_walk_finds(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        schedule, now_us = _any_schedule(chance), NOON_US + chance.randrange(-300, 300)
        assert first_occurrence(schedule, now_us) == walk_to_first(schedule, now_us), (schedule, now_us)


@pytest.mark.parametrize("seed", range(20))
def test_the_next_occurrence_and_what_was_missed_are_what_a_walk_finds(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        schedule, runs = _any_schedule(chance), chance.randrange(4)
        occurrence_us = NOON_US + chance.randrange(-300, 300)
        now_us = occurrence_us + chance.randrange(-50, 500)
        case = (schedule, occurrence_us, runs, now_us)
        assert next_occurrence(*case) == walk_to_next(*case), case


@pytest.mark.parametrize("seed", range(20))
def test_a_series_of_occurrences_carried_out_late_accounts_for_every_point_of_the_grid(seed: int) -> None:
    chance = random.Random(seed)
    interval_us = chance.randrange(1, 50)
    end_us = NOON_US + chance.randrange(1000)
    schedule = fixed_rate(interval_us, end_us=end_us)
    at_us, carried_out, missed = first_occurrence(schedule, NOON_US), 0, 0
    while at_us is not None:
        carried_out += 1
        following = next_occurrence(schedule, at_us, carried_out, at_us + chance.randrange(200))
        missed += following.missed
        at_us = following.at_us
    assert carried_out + missed == len(range(NOON_US, end_us + 1, interval_us))


def test_fifty_years_at_the_shortest_interval_are_no_walk() -> None:
    schedule = fixed_rate(INTERVAL_MIN_US, start_us=NOON_US)
    now_us = NOON_US + 50 * YEAR_US + 1
    points = 50 * YEAR_US // INTERVAL_MIN_US
    assert first_occurrence(schedule, now_us) == NOON_US + (points + 1) * INTERVAL_MIN_US
    assert next_occurrence(schedule, NOON_US, 1, now_us) == Next(NOON_US + (points + 1) * INTERVAL_MIN_US, points)


def test_occurrences_missed_up_to_a_far_end_time_are_counted_without_a_walk() -> None:
    schedule = fixed_rate(INTERVAL_MIN_US, end_us=NOON_US + 40 * YEAR_US)
    following = next_occurrence(schedule, NOON_US, 1, NOON_US + 50 * YEAR_US)
    assert following == Next(None, 40 * YEAR_US // INTERVAL_MIN_US)


@pytest.mark.parametrize("schedule", [fixed_rate(INTERVAL_MAX_US), drift(INTERVAL_MAX_US)])
def test_nothing_is_planned_at_the_end_of_time_or_beyond(schedule: Schedule) -> None:
    at_us, occurrences = first_occurrence(schedule, NOON_US), 0
    while at_us is not None:
        assert at_us < END_OF_TIME_US
        occurrences += 1
        at_us = next_occurrence(schedule, at_us, occurrences, at_us).at_us
    assert occurrences == 1 + (END_OF_TIME_US - 1 - NOON_US) // INTERVAL_MAX_US


def test_a_mode_that_is_not_given_is_a_fixed_rate() -> None:
    schedule = fixed_rate(HOUR_US)
    schedule.periodic.mode = Periodic.MODE_UNSPECIFIED
    assert next_occurrence(schedule, NOON_US, 1, NOON_US + MINUTE_US) == Next(NOON_US + HOUR_US, 0)


def test_without_a_recurrence_there_is_no_next_occurrence() -> None:
    schedule = once()
    schedule.ClearField("recurrence")
    assert first_occurrence(schedule, NOON_US - DAY_US) == NOON_US
    assert next_occurrence(schedule, NOON_US, 0, NOON_US) == Next(None, 0)


@pytest.mark.parametrize(
    ("schedule", "resumed"),
    [
        (once(), Next(NOON_US + 90 * MINUTE_US, 0)),
        (drift(HOUR_US), Next(NOON_US + 90 * MINUTE_US, 0)),
        (fixed_rate(HOUR_US), Next(NOON_US + 2 * HOUR_US, 2)),
        (fixed_rate(HOUR_US, end_us=NOON_US + HOUR_US), Next(None, 2)),
        (drift(HOUR_US, end_us=NOON_US + HOUR_US), Next(None, 0)),
        # Paused after a run that a user wanted beyond the last one: there is no grid left to go back to.
        (fixed_rate(HOUR_US, max_runs=1), Next(None, 1)),
    ],
)
def test_where_an_action_goes_on_that_was_paused_for_an_hour_and_a_half(schedule: Schedule, resumed: Next) -> None:
    assert resumed_occurrence(schedule, NOON_US, 1, NOON_US + 90 * MINUTE_US) == resumed


@pytest.mark.parametrize("schedule", [once(), drift(HOUR_US), fixed_rate(HOUR_US)])
def test_an_occurrence_that_has_not_passed_is_kept_by_a_resumed_action(schedule: Schedule) -> None:
    assert resumed_occurrence(schedule, NOON_US, 0, NOON_US - SECOND_US) == Next(NOON_US, 0)
    assert resumed_occurrence(schedule, NOON_US, 0, NOON_US) == Next(NOON_US, 0)


@pytest.mark.parametrize(
    ("now_us", "retry_at_us", "gives_way"),
    [
        (NOON_US, NOON_US + HOUR_US - 1, False),
        (NOON_US, NOON_US + HOUR_US, True),
        # The attempt outlasted three occurrences; its retry comes after them, though before the one that is next.
        (NOON_US + 3 * HOUR_US + 1, NOON_US + 3 * HOUR_US + 2, True),
        # It outlasted the end time, five hours after noon: nothing is left to give way to.
        (NOON_US + 5 * HOUR_US + 1, NOON_US + 9 * HOUR_US, False),
    ],
)
def test_when_a_retry_gives_way(now_us: int, retry_at_us: int, gives_way: bool) -> None:
    schedule = fixed_rate(HOUR_US, end_us=NOON_US + 5 * HOUR_US)
    assert retry_gives_way(schedule, NOON_US, 1, now_us, retry_at_us) is gives_way
    assert not retry_gives_way(drift(HOUR_US), NOON_US, 1, now_us, retry_at_us)
    assert not retry_gives_way(once(), NOON_US, 1, now_us, retry_at_us)
