"""Occurrences, told as stories: periodic actions, what they miss, where they end, and the start deadline."""

import pytest

from clepsydra.core.action.events import Decision
from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, MINUTE_US, SECOND_US, YEAR_US
from clepsydra.v1.action_pb2 import Schedule
from tests.unit.lives import Life
from tests.unit.specs import NOON_US, drift, fixed_rate, once, retry_policy, spec_of


def test_a_fixed_rate_action_keeps_to_its_grid_however_long_runs_take() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    for run, took_us in enumerate((SECOND_US, 59 * MINUTE_US, 1)):
        assert life.occurrence_us == NOON_US + run * HOUR_US
        life.begin(life.planned_us)
        life.succeed(life.planned_us + took_us)
    assert life.state == "SCHEDULED"
    assert life.counters.runs == 3
    assert life.counters.missed_occurrences == 0


def test_a_drifting_action_counts_its_interval_from_the_end_of_the_last_run() -> None:
    life = Life(spec_of(drift(HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + 10 * MINUTE_US)
    assert life.planned_us == life.occurrence_us == NOON_US + 70 * MINUTE_US


def test_occurrences_that_passed_while_one_ran_are_skipped_and_counted() -> None:
    life = Life(spec_of(fixed_rate(MINUTE_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + 3 * MINUTE_US + 1)
    assert life.occurrence_us == NOON_US + 4 * MINUTE_US
    assert life.counters.missed_occurrences == 3


def test_an_occurrence_at_the_very_moment_when_the_last_one_ends_is_not_missed() -> None:
    life = Life(spec_of(fixed_rate(MINUTE_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + MINUTE_US)
    assert life.occurrence_us == NOON_US + MINUTE_US
    assert life.counters.missed_occurrences == 0


def test_after_a_night_without_workers_the_waiting_occurrence_runs_late_and_the_others_are_missed() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    morning_us = NOON_US + 10 * HOUR_US + MINUTE_US
    life.begin(morning_us)
    life.succeed(morning_us)
    assert life.occurrence_us == NOON_US + 11 * HOUR_US
    assert life.counters.runs == 1
    assert life.counters.missed_occurrences == 10


def test_fifty_years_of_missed_occurrences_are_one_division() -> None:
    life = Life(spec_of(fixed_rate(10_000)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + 50 * YEAR_US)
    assert life.counters.missed_occurrences == 50 * YEAR_US // 10_000 - 1


@pytest.mark.parametrize("schedule", [fixed_rate(HOUR_US, max_runs=2), drift(HOUR_US, max_runs=2)])
def test_the_action_ends_after_its_runs_successful_or_given_up(schedule: Schedule) -> None:
    life = Life(spec_of(schedule), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retryable=False)
    assert life.state == "SCHEDULED"
    assert life.status.reason == ""
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.state == "SUCCEEDED"
    assert life.counters.runs == 2


def test_the_end_time_itself_is_still_an_occurrence_and_nothing_after_it_is() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US, end_us=NOON_US + HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US)
    assert life.occurrence_us == NOON_US + HOUR_US
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.state == "SUCCEEDED"


def test_a_drifting_action_ends_when_its_next_run_would_come_after_its_end_time() -> None:
    life = Life(spec_of(drift(HOUR_US, end_us=NOON_US + HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + 1)
    assert life.state == "SUCCEEDED"


def test_occurrences_missed_before_the_end_time_are_counted_when_the_action_ends() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US, end_us=NOON_US + 3 * HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + DAY_US)
    assert life.state == "SUCCEEDED"
    assert life.counters.missed_occurrences == 3


def test_an_action_accepted_after_its_start_joins_its_grid_and_misses_nothing() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US + 90 * MINUTE_US)
    assert life.occurrence_us == NOON_US + 2 * HOUR_US
    assert life.counters.missed_occurrences == 0


@pytest.mark.parametrize("schedule", [once(), drift(HOUR_US)])
def test_without_a_grid_an_action_accepted_after_its_start_runs_at_once(schedule: Schedule) -> None:
    life = Life(spec_of(schedule), accepted_us=NOON_US + MINUTE_US)
    assert life.planned_us == life.occurrence_us == NOON_US + MINUTE_US


@pytest.mark.parametrize(
    "schedule",
    [
        # The next point of the grid lies after the end, though the end itself does not lie in the past.
        fixed_rate(HOUR_US, end_us=NOON_US + 90 * MINUTE_US),
        drift(HOUR_US, end_us=NOON_US + MINUTE_US),
        fixed_rate(10 * YEAR_US, start_us=END_OF_TIME_US - 80 * YEAR_US),
    ],
)
def test_an_action_accepted_when_no_occurrence_is_left_has_ended(schedule: Schedule) -> None:
    now_us = NOON_US + 80 * MINUTE_US if schedule.periodic.HasField("end_time") else END_OF_TIME_US - YEAR_US
    life = Life(spec_of(schedule, keep_failure_us=DAY_US), accepted_us=now_us)
    assert life.state == "EXPIRED"
    assert life.status.reason == "no occurrence of it is left"
    assert life.row_at_us == now_us + DAY_US


def test_even_a_record_that_is_not_to_be_kept_has_a_row_after_a_users_call() -> None:
    spec = spec_of(drift(HOUR_US, end_us=NOON_US), keep_failure_us=0)
    life = Life(spec, accepted_us=NOON_US + MINUTE_US)
    assert life.state == "EXPIRED"
    assert life.row_at_us == NOON_US + MINUTE_US
    life.purge(NOON_US + MINUTE_US)


def test_a_retry_gives_way_to_the_next_fixed_rate_occurrence() -> None:
    policy = retry_policy(first_delay_us=40 * SECOND_US)
    life = Life(spec_of(fixed_rate(MINUTE_US), retry=policy), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US + SECOND_US)
    assert life.state == "RETRYING"
    life.begin(life.planned_us)
    life.fail(NOON_US + 42 * SECOND_US)
    assert life.state == "SCHEDULED"
    assert life.occurrence_us == NOON_US + MINUTE_US
    assert life.counters.runs == 1
    assert life.counters.missed_occurrences == 0


def test_a_retry_at_the_very_time_of_the_next_occurrence_gives_way_too() -> None:
    life = Life(spec_of(fixed_rate(MINUTE_US), retry=retry_policy(first_delay_us=MINUTE_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    assert life.state == "SCHEDULED"
    assert life.occurrence_us == NOON_US + MINUTE_US


@pytest.mark.parametrize(
    "schedule",
    [
        fixed_rate(MINUTE_US, max_runs=1),
        fixed_rate(MINUTE_US, end_us=NOON_US + SECOND_US),
        drift(MINUTE_US),
        once(),
    ],
)
def test_a_retry_gives_way_to_nothing_if_nothing_follows_on_a_grid(schedule: Schedule) -> None:
    life = Life(spec_of(schedule, retry=retry_policy(first_delay_us=HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    assert life.state == "RETRYING"
    assert life.planned_us == NOON_US + HOUR_US


def test_a_retry_does_not_give_way_to_occurrences_that_have_all_passed_already() -> None:
    # The last attempt before the end time outlasts the end time: nothing is left to give way to.
    life = Life(spec_of(fixed_rate(HOUR_US, end_us=NOON_US + HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US + 61 * MINUTE_US)
    assert life.state == "RETRYING"
    assert life.occurrence_us == NOON_US


def test_an_occurrence_that_could_not_start_within_its_deadline_expires() -> None:
    life = Life(spec_of(once(), start_deadline_us=MINUTE_US, keep_failure_us=DAY_US), accepted_us=NOON_US)
    assert life.decision(NOON_US + MINUTE_US) is Decision.BEGIN
    now_us = NOON_US + MINUTE_US + 1
    life.expire(now_us)
    assert life.state == "EXPIRED"
    assert life.status.reason == "it could not start within its start deadline"
    assert life.counters.expired_occurrences == 1
    assert life.counters.runs == 0
    assert life.row_at_us == now_us + DAY_US


@pytest.mark.parametrize(
    ("schedule", "next_us"),
    [(fixed_rate(HOUR_US), NOON_US + 3 * HOUR_US), (drift(HOUR_US), NOON_US + 3 * HOUR_US + MINUTE_US)],
)
def test_a_periodic_action_goes_on_after_an_expired_occurrence(schedule: Schedule, next_us: int) -> None:
    life = Life(spec_of(schedule, start_deadline_us=MINUTE_US), accepted_us=NOON_US)
    life.expire(NOON_US + 2 * HOUR_US + MINUTE_US)
    assert life.state == "SCHEDULED"
    assert life.occurrence_us == next_us
    assert life.counters.expired_occurrences == 1


def test_the_start_deadline_no_longer_holds_once_an_attempt_has_failed() -> None:
    life = Life(spec_of(once(), start_deadline_us=SECOND_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US + MINUTE_US)
    assert life.decision(life.planned_us + DAY_US) is Decision.BEGIN


def test_the_start_deadline_no_longer_holds_once_an_attempt_was_interrupted() -> None:
    life = Life(spec_of(once(), start_deadline_us=SECOND_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    assert life.decision(NOON_US + DAY_US) is Decision.INTERRUPT
    life.interrupt(NOON_US + DAY_US)
    assert life.decision(life.planned_us + DAY_US) is Decision.BEGIN


def test_the_start_deadline_holds_anew_for_the_next_occurrence() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US), start_deadline_us=SECOND_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retryable=False)
    assert life.decision(life.planned_us + MINUTE_US) is Decision.EXPIRE
