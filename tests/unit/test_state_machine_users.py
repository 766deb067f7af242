"""What users do to an action, told as stories: update, pause, resume, run now, delete."""

import pytest

from clepsydra.core.action.events import Decision
from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.state_machine import ImpossibleEvent
from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, MINUTE_US, SECOND_US
from clepsydra.v1.action_pb2 import Schedule
from tests.unit.lives import Life
from tests.unit.specs import NOON_US, drift, fixed_rate, once, spec_of


def test_an_update_of_the_schedule_is_a_new_life_with_a_fresh_status() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    life.accept(NOON_US + SECOND_US, spec_of(once(NOON_US + DAY_US)))
    assert life.state == "SCHEDULED"
    assert life.planned_us == NOON_US + DAY_US
    assert life.counters.ByteSize() == 0
    assert not life.status.HasField("last_attempt")


def test_a_paused_action_lies_at_the_end_of_time_and_keeps_its_counters() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US)
    life.pause(NOON_US + MINUTE_US)
    assert life.state == "PAUSED"
    assert life.row_at_us == life.planned_us == END_OF_TIME_US
    assert life.counters.runs == 1
    assert life.decision(END_OF_TIME_US) is Decision.WAIT


def test_an_action_resumed_before_its_occurrence_goes_on_with_it() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US - HOUR_US)
    life.pause(NOON_US - MINUTE_US)
    life.resume(NOON_US - SECOND_US)
    assert life.state == "SCHEDULED"
    assert life.row_at_us == life.planned_us == life.occurrence_us == NOON_US


def test_an_action_resumed_on_a_grid_goes_on_with_its_next_point_and_counts_what_it_missed() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US - HOUR_US)
    life.pause(NOON_US - MINUTE_US)
    life.resume(NOON_US + 150 * MINUTE_US)
    assert life.occurrence_us == NOON_US + 3 * HOUR_US
    # 12:00, 13:00 and 14:00.
    assert life.counters.missed_occurrences == 3


@pytest.mark.parametrize("schedule", [once(), drift(HOUR_US)])
def test_without_a_grid_an_action_resumed_after_its_time_runs_at_once(schedule: Schedule) -> None:
    life = Life(spec_of(schedule, start_deadline_us=SECOND_US), accepted_us=NOON_US - HOUR_US)
    life.pause(NOON_US - MINUTE_US)
    life.resume(NOON_US + DAY_US)
    assert life.planned_us == life.occurrence_us == NOON_US + DAY_US
    # The start deadline counts from here: the user has just asked for it to go on.
    assert life.decision(life.planned_us) is Decision.BEGIN


@pytest.mark.parametrize("schedule", [once(), drift(HOUR_US)])
def test_an_action_paused_between_retries_is_resumed_where_it_was(schedule: Schedule) -> None:
    life = Life(spec_of(schedule), accepted_us=NOON_US)
    key = life.key
    life.begin(NOON_US)
    life.fail(NOON_US)
    life.pause(NOON_US + 1)
    life.resume(NOON_US + MINUTE_US)
    assert life.state == "RETRYING"
    assert (life.planned_us, life.occurrence_us) == (NOON_US + MINUTE_US, NOON_US)
    assert (life.key, attempt_number(life.status)) == (key, 2)
    assert life.counters.failed_attempts == 1


@pytest.mark.parametrize("change", ["pause", "change_target"])
def test_an_attempt_that_may_run_during_a_change_is_counted_and_the_key_stays(change: str) -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    key = life.key
    life.begin(NOON_US)
    getattr(life, change)(NOON_US + SECOND_US)
    if life.state == "PAUSED":
        life.resume(NOON_US + MINUTE_US)
    assert (life.key, attempt_number(life.status)) == (key, 2)
    assert life.status.occurrence.superseded_attempts == 1
    # It does not count for the retry policy, and nobody knows whether it began: the start deadline still holds.
    assert (life.state, life.counters.failed_attempts) == ("SCHEDULED", 0)


def test_a_change_before_the_planned_time_supersedes_no_attempt() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US - HOUR_US)
    key = life.key
    life.pause(NOON_US - MINUTE_US)
    life.change_target(NOON_US - SECOND_US)
    life.resume(NOON_US - 1)
    assert (life.key, attempt_number(life.status)) == (key, 1)
    assert life.row_at_us == NOON_US


def test_a_resume_that_moves_on_to_a_later_occurrence_makes_a_new_key() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    key = life.key
    life.begin(NOON_US)
    life.pause(NOON_US + SECOND_US)
    life.resume(NOON_US + MINUTE_US)
    assert life.occurrence_us == NOON_US + HOUR_US
    assert life.key != key
    assert attempt_number(life.status) == 1


def test_a_run_that_a_user_asks_for_is_a_new_piece_of_work() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    key = life.key
    life.begin(NOON_US)
    life.run_now(NOON_US)
    assert life.key != key
    assert attempt_number(life.status) == 1


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_change_of_the_target_leaves_an_ended_action_ended(ends_well: bool) -> None:
    life = Life(spec_of(once(), keep_success_us=DAY_US, keep_failure_us=DAY_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US) if ends_well else life.fail(NOON_US, retryable=False)
    before, row_at_us = life.status, life.row_at_us
    life.change_target(NOON_US + HOUR_US)
    assert (life.status, life.row_at_us) == (before, row_at_us)


def test_a_change_of_the_target_keeps_a_paused_action_paused_and_its_counters() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US)
    life.pause(NOON_US + 1)
    life.change_target(NOON_US + DAY_US)
    assert (life.state, life.row_at_us, life.counters.runs) == ("PAUSED", END_OF_TIME_US, 1)


@pytest.mark.parametrize("ending", ["succeed", "fail", "expire", "resume after the end"])
def test_a_retention_that_was_made_longer_keeps_an_ended_action_longer(ending: str) -> None:
    schedule = drift(HOUR_US, end_us=NOON_US + HOUR_US) if ending.startswith("resume") else once()
    spec = spec_of(schedule, start_deadline_us=MINUTE_US, keep_success_us=HOUR_US, keep_failure_us=HOUR_US)
    life = Life(spec, accepted_us=NOON_US)
    if ending == "expire":
        life.expire(ended_us := NOON_US + 2 * MINUTE_US)
    elif ending in ("succeed", "fail"):
        life.begin(NOON_US)
        ended_us = NOON_US + SECOND_US
        life.succeed(ended_us) if ending == "succeed" else life.fail(ended_us, retryable=False)
    else:
        life.pause(NOON_US)
        life.resume(ended_us := NOON_US + 2 * HOUR_US)
    assert life.row_at_us == ended_us + HOUR_US
    life.spec.retention.after_success.FromSeconds(DAY_US // SECOND_US)
    life.spec.retention.after_failure.FromSeconds(DAY_US // SECOND_US)
    life.purge(ended_us + HOUR_US)
    assert life.row_at_us == life.planned_us == ended_us + DAY_US
    life.purge(ended_us + DAY_US)
    assert life.row_at_us is None


def test_a_retention_that_was_made_shorter_lets_an_ended_action_go_at_its_purge() -> None:
    life = Life(spec_of(once(), keep_success_us=HOUR_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US)
    life.spec.retention.after_success.FromSeconds(0)
    life.purge(NOON_US + HOUR_US)
    assert life.row_at_us is None


@pytest.mark.parametrize(
    ("schedule", "missed"),
    [(fixed_rate(HOUR_US, end_us=NOON_US + 2 * HOUR_US), 3), (drift(HOUR_US, end_us=NOON_US + 2 * HOUR_US), 0)],
)
def test_an_action_resumed_after_its_end_time_has_ended_and_does_not_run(schedule: Schedule, missed: int) -> None:
    life = Life(spec_of(schedule, keep_failure_us=DAY_US), accepted_us=NOON_US - HOUR_US)
    life.pause(NOON_US - MINUTE_US)
    life.resume(NOON_US + 3 * HOUR_US)
    assert life.state == "EXPIRED"
    assert life.status.reason == "no occurrence of it is left"
    assert life.counters.missed_occurrences == missed
    assert life.row_at_us == NOON_US + 3 * HOUR_US + DAY_US


def test_a_once_action_can_be_run_before_its_time_and_has_ended_then() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US - DAY_US)
    life.run_now(NOON_US - HOUR_US)
    assert life.planned_us == life.occurrence_us == NOON_US - HOUR_US
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.state == "SUCCEEDED"


def test_a_periodic_action_that_was_run_now_goes_on_with_its_grid() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US - DAY_US)
    life.run_now(NOON_US - 10 * MINUTE_US)
    life.begin(life.planned_us)
    life.succeed(NOON_US - 9 * MINUTE_US)
    assert life.occurrence_us == NOON_US
    assert life.counters.missed_occurrences == 0


def test_a_drifting_action_that_was_run_before_its_start_still_waits_for_its_start() -> None:
    life = Life(spec_of(drift(HOUR_US)), accepted_us=NOON_US - 2 * DAY_US)
    life.run_now(NOON_US - DAY_US)
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.occurrence_us == NOON_US


def test_run_now_gives_up_the_retries_of_the_occurrence_before() -> None:
    life = Life(spec_of(once(), start_deadline_us=MINUTE_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    life.run_now(NOON_US + SECOND_US)
    assert life.state == "SCHEDULED"
    assert attempt_number(life.status) == 1
    assert life.counters.failed_attempts == life.counters.consecutive_failed_attempts == 1


@pytest.mark.parametrize(
    "schedule",
    [fixed_rate(HOUR_US, max_runs=2), drift(HOUR_US, max_runs=2), fixed_rate(HOUR_US, end_us=NOON_US + HOUR_US)],
)
def test_a_periodic_action_that_has_had_all_its_runs_is_run_just_once_more(schedule: Schedule) -> None:
    life = Life(spec_of(schedule), accepted_us=NOON_US)
    for _ in range(2):
        life.begin(life.planned_us)
        life.succeed(life.planned_us)
    assert life.state == "SUCCEEDED"
    life.run_now(NOON_US + 5 * HOUR_US)
    assert life.state == "SCHEDULED"
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.state == "SUCCEEDED"
    assert life.counters.runs == 3


def test_a_person_who_runs_an_action_starts_its_interruption_limit_over() -> None:
    life = Life(spec_of(once(), interruption_limit=2), accepted_us=NOON_US)
    life.begin(life.planned_us)
    life.interrupt(NOON_US + MINUTE_US)
    life.run_now(NOON_US + HOUR_US)
    life.begin(life.planned_us)
    life.interrupt(NOON_US + 2 * HOUR_US)
    assert life.state == "RETRYING"
    assert life.counters.interrupted_attempts == 2
    assert life.counters.consecutive_interrupted_attempts == 1


def test_a_deleted_action_is_a_tombstone_until_its_purge() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US - DAY_US)
    life.delete(NOON_US - HOUR_US, retention_us=MINUTE_US)
    assert life.state == "DELETED"
    assert life.row_at_us == life.planned_us == NOON_US - HOUR_US + MINUTE_US
    life.purge(NOON_US - HOUR_US + MINUTE_US)
    assert life.row_at_us is None


def test_no_tombstone_outlasts_the_end_of_time() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.delete(END_OF_TIME_US - SECOND_US, retention_us=MINUTE_US)
    assert life.row_at_us == life.planned_us == END_OF_TIME_US


def test_what_was_deleted_can_be_created_again_and_nothing_else() -> None:
    life = Life(spec_of(once(NOON_US + DAY_US)), accepted_us=NOON_US)
    life.delete(NOON_US, retention_us=HOUR_US)
    for change in (life.pause, life.resume, life.run_now):
        with pytest.raises(ImpossibleEvent):
            change(NOON_US)
    life.accept(NOON_US + 1)
    assert life.state == "SCHEDULED"
    assert life.planned_us == NOON_US + DAY_US
