"""Attempts, told as stories: begin, succeed, fail and retry, be interrupted, be kept and purged."""

import pytest

from clepsydra.core.action.attempt import attempt_id
from clepsydra.core.action.events import Began, Decision, Succeeded
from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.action.state_machine import ImpossibleEvent, Moment, decide, step
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, State, Status
from tests.unit.lives import GRACE_US, LEASE_US, Life
from tests.unit.specs import NOON_US, fixed_rate, once, retry_policy, spec_of


def test_an_action_waits_for_its_time_and_then_asks_to_begin() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US - HOUR_US)
    assert life.state == "SCHEDULED"
    assert life.row_at_us == life.planned_us == life.occurrence_us == NOON_US
    assert life.decision(NOON_US) is Decision.BEGIN


def test_begin_moves_the_row_to_the_end_of_the_lease_and_leaves_the_status_alone() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US - HOUR_US)
    before = life.status.SerializeToString(deterministic=True)
    life.begin(NOON_US + 3)
    assert life.row_at_us == NOON_US + 3 + LEASE_US + GRACE_US
    assert life.status.SerializeToString(deterministic=True) == before


def test_the_lease_of_a_short_attempt_is_its_timeout() -> None:
    life = Life(spec_of(once(), attempt_timeout_us=2 * SECOND_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    assert life.row_at_us == NOON_US + 2 * SECOND_US + GRACE_US


def test_a_lease_counts_from_the_rows_time_if_the_clock_is_behind_it() -> None:
    spec = spec_of(once())
    life = Life(spec, accepted_us=NOON_US - HOUR_US)
    begun = step(spec, life.status, Began(LEASE_US, GRACE_US), Moment(NOON_US - 9, NOON_US))
    assert begun.at_us == NOON_US + LEASE_US + GRACE_US


def test_success_of_a_once_action_ends_it_and_keeps_its_record_for_its_retention() -> None:
    life = Life(spec_of(once(), keep_success_us=DAY_US), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + SECOND_US)
    assert life.state == "SUCCEEDED"
    assert life.row_at_us == life.planned_us == NOON_US + SECOND_US + DAY_US
    assert life.counters.succeeded_attempts == life.counters.runs == 1
    assert life.status.last_attempt.outcome == Attempt.SUCCESS
    life.purge(NOON_US + SECOND_US + DAY_US)
    assert life.row_at_us is None


def test_with_a_retention_of_zero_action_and_row_are_removed_at_once() -> None:
    life = Life(spec_of(once(), keep_success_us=0), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.succeed(NOON_US + SECOND_US)
    assert life.row_at_us is None


def test_failure_has_its_own_retention() -> None:
    life = Life(spec_of(once(), keep_success_us=DAY_US, keep_failure_us=0), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retryable=False)
    assert life.state == "FAILED"
    assert life.row_at_us is None


def test_a_failed_attempt_is_retried_with_growing_delays() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    now_us = NOON_US
    delays_us = []
    for _ in range(4):
        life.begin(now_us)
        life.fail(now_us)
        assert life.state == "RETRYING"
        delays_us.append(life.planned_us - now_us)
        now_us = life.planned_us
    assert delays_us == [SECOND_US, 2 * SECOND_US, 4 * SECOND_US, 8 * SECOND_US]
    assert life.counters.failed_attempts == life.counters.consecutive_failed_attempts == 4
    assert life.counters.runs == 0


def test_success_after_failures_forgets_the_consecutive_ones_only() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    life.begin(life.planned_us)
    life.succeed(NOON_US + MINUTE_US)
    assert life.counters.failed_attempts == 1
    assert life.counters.consecutive_failed_attempts == 0
    assert attempt_number(life.status) == 1


def test_the_last_of_the_policys_attempts_gives_the_occurrence_up() -> None:
    life = Life(spec_of(once(), retry=retry_policy(max_attempts=2)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US)
    assert life.state == "RETRYING"
    life.begin(life.planned_us)
    life.fail(life.planned_us)
    assert life.state == "FAILED"
    assert life.status.reason == "the retry policy's attempts are used up"
    assert life.counters.runs == 1


def test_no_retry_is_planned_beyond_the_policys_time() -> None:
    policy = retry_policy(first_delay_us=10 * SECOND_US, max_elapsed_us=15 * SECOND_US)
    life = Life(spec_of(once(), retry=policy), accepted_us=NOON_US)
    life.begin(NOON_US + SECOND_US)
    life.fail(NOON_US + 6 * SECOND_US)
    assert life.state == "RETRYING"
    assert life.planned_us == NOON_US + 16 * SECOND_US
    life.begin(life.planned_us)
    life.fail(life.planned_us)
    assert life.state == "FAILED"
    assert life.status.reason == "the retry policy's time is used up"


def test_a_target_may_ask_not_to_be_tried_again() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retryable=False)
    assert life.state == "FAILED"
    assert life.status.reason == "the target asked not to be tried again"


def test_the_reason_of_a_failure_that_is_not_retried_is_the_failures_own() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retryable=False, error="the target answered 404 Not Found, which is not retried")
    assert life.status.reason == "the target answered 404 Not Found, which is not retried"


def test_a_targets_wish_takes_the_place_of_the_policys_delay_but_not_of_its_limits() -> None:
    life = Life(spec_of(once(), retry=retry_policy(max_elapsed_us=HOUR_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.fail(NOON_US, retry_after_us=7 * MINUTE_US)
    assert life.planned_us == NOON_US + 7 * MINUTE_US
    life.begin(life.planned_us)
    life.fail(life.planned_us, retry_after_us=HOUR_US)
    assert life.state == "FAILED"


@pytest.mark.parametrize(
    ("wish_us", "delay_us"), [(-MINUTE_US, 0), (0, 0), (SECOND_US, SECOND_US), (50 * 365 * DAY_US, RETRY_DELAY_MAX_US)]
)
def test_a_targets_wish_is_held_to_the_longest_delay_that_a_user_could_ask_for(wish_us: int, delay_us: int) -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US + SECOND_US)
    life.fail(NOON_US + MINUTE_US, retry_after_us=wish_us)
    assert life.planned_us == NOON_US + MINUTE_US + delay_us


def test_a_retry_keeps_the_occurrence_so_that_targets_can_recognise_it() -> None:
    life = Life(spec_of(fixed_rate(HOUR_US)), accepted_us=NOON_US)
    first = (life.key, attempt_id("g", life.occurrence_us, attempt_number(life.status)))
    life.begin(NOON_US)
    life.fail(NOON_US)
    assert life.occurrence_us == NOON_US != life.planned_us
    assert life.key == first[0]
    assert attempt_id("g", life.occurrence_us, attempt_number(life.status)) != first[1]
    life.begin(life.planned_us)
    life.succeed(life.planned_us)
    assert life.key != first[0]


def test_an_attempt_whose_end_was_never_written_is_found_out_when_its_lease_ends() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US)
    lease_end_us = NOON_US + LEASE_US + GRACE_US
    assert life.decision(lease_end_us) is Decision.INTERRUPT
    life.interrupt(lease_end_us)
    assert life.state == "RETRYING"
    assert life.status.last_attempt.outcome == Attempt.INTERRUPTION
    assert life.counters.interrupted_attempts == life.counters.consecutive_interrupted_attempts == 1
    assert attempt_number(life.status) == 2
    assert life.decision(life.planned_us) is Decision.BEGIN


def test_an_interrupted_attempt_is_taken_up_at_once_but_not_at_its_rows_own_time() -> None:
    life = Life(spec_of(once()), accepted_us=NOON_US)
    life.begin(NOON_US)
    lease_end_us = NOON_US + LEASE_US + GRACE_US
    life.interrupt(lease_end_us)
    assert life.row_at_us == life.planned_us == lease_end_us + 1


def test_interruptions_use_up_no_attempts_of_the_retry_policy() -> None:
    life = Life(spec_of(once(), retry=retry_policy(max_attempts=2)), accepted_us=NOON_US)
    for _ in range(5):
        life.begin(life.planned_us)
        life.interrupt((life.row_at_us or 0) + SECOND_US)
    now_us = life.planned_us
    life.begin(now_us)
    life.fail(now_us)
    assert life.state == "RETRYING"
    assert life.planned_us == now_us + SECOND_US
    assert attempt_number(life.status) == 7


def test_any_written_outcome_starts_the_interruption_limit_over() -> None:
    life = Life(spec_of(once(), interruption_limit=2), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.interrupt(NOON_US + MINUTE_US)
    life.begin(NOON_US + MINUTE_US)
    life.fail(NOON_US + MINUTE_US)
    life.begin(life.planned_us)
    life.interrupt(NOON_US + HOUR_US)
    assert life.state == "RETRYING"
    assert life.counters.interrupted_attempts == 2
    assert life.counters.consecutive_interrupted_attempts == 1


def test_the_first_attempt_counts_for_the_policys_time_even_if_it_was_interrupted() -> None:
    life = Life(spec_of(once(), retry=retry_policy(max_elapsed_us=MINUTE_US)), accepted_us=NOON_US)
    life.begin(NOON_US)
    life.interrupt(NOON_US + 59 * SECOND_US)
    life.begin(life.planned_us)
    life.fail(NOON_US + 60 * SECOND_US)
    assert life.state == "FAILED"


def test_a_paused_or_unknown_state_waits() -> None:
    # 99: a state that only a newer version knows.
    for state in (action_pb2.STATE_UNSPECIFIED, action_pb2.PAUSED, 99):
        status = Status()
        status.state = state  # type: ignore[assignment]
        assert decide(spec_of(once()), status, NOON_US, NOON_US) is Decision.WAIT


@pytest.mark.parametrize(("state", "name"), [(action_pb2.PAUSED, "PAUSED"), (99, "99")])
def test_an_event_without_a_meaning_is_refused_by_name(state: State, name: str) -> None:
    status = Status(state=state)
    with pytest.raises(ImpossibleEvent, match=f"Succeeded means nothing to an action that is {name}"):
        step(spec_of(once()), status, Succeeded(Attempt()), Moment(NOON_US, NOON_US))
