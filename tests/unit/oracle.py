"""What every event must come to, said a second time and in another way than the state machine says it.

The exhaustive test compares the two, case by case. Where the product plans in one pass, this asks three questions:
what do the counters show, in which state is the action, and for which time is it planned.
"""

from typing import NamedTuple

from clepsydra.core.action.events import (
    Accepted,
    Began,
    Cancelled,
    Deleted,
    Event,
    Expired,
    Failed,
    Interrupted,
    Paused,
    Purged,
    Resumed,
    RunRequested,
    Succeeded,
    TargetChanged,
)
from clepsydra.core.action.state_machine import Moment
from clepsydra.core.times import END_OF_TIME_US, SECOND_US, duration_us, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Counters, Spec, Status
from tests.unit.walks import is_on_a_grid, walk_to_delay, walk_to_first, walk_to_next

ENDING = {
    Succeeded: action_pb2.SUCCEEDED,
    Failed: action_pb2.FAILED,
    Expired: action_pb2.EXPIRED,
    Accepted: action_pb2.EXPIRED,
    Resumed: action_pb2.EXPIRED,
    Cancelled: action_pb2.CANCELLED,
}


class Case(NamedTuple):
    spec: Spec
    status: Status
    event: Event
    moment: Moment

    @property
    def occurrence_us(self) -> int:
        return us_of(self.status.occurrence_time)

    @property
    def planned_us(self) -> int:
        return us_of(self.status.scheduled_time)


class Outcome(NamedTuple):
    """What becomes of an action. No time: it is removed."""

    state: int
    wanted_us: int | None
    # None: the occurrence stays as it is.
    occurrence_us: int | None
    counters: Counters
    # Whether the attempts at the occurrence, and its key, stay as they are though it is planned again.
    goes_on: bool = False


def outcome_of(case: Case) -> Outcome:
    """The state, and the time before it is moved out of the way of times that are taken."""
    counters = Counters()
    counters.CopyFrom(case.status.counters)
    return _by_a_user(case, counters) if case.moment.row_at_us is None else _by_a_worker(case, counters)


def _by_a_user(case: Case, counters: Counters) -> Outcome:
    event, now_us = case.event, case.moment.now_us
    match event:
        case Accepted():
            return _occurrence_or_end(case, Counters(), walk_to_first(case.spec.schedule, now_us))
        case TargetChanged():
            counters.consecutive_interrupted_attempts = 0
            return Outcome(case.status.state, case.planned_us, None, counters)
        case Paused():
            return Outcome(action_pb2.PAUSED, END_OF_TIME_US, None, counters)
        case Resumed():
            counters.consecutive_interrupted_attempts = 0
            return _after_a_pause(case, counters)
        case RunRequested():
            counters.consecutive_interrupted_attempts = 0
            return Outcome(action_pb2.SCHEDULED, now_us, now_us, counters)
        case Cancelled():
            counters.cancelled_occurrences += 1
            counters.cancelled_attempts += event.attempt is not None
            return _after_an_occurrence(case, counters)
        case Deleted():
            return Outcome(action_pb2.DELETED, now_us + event.retention_us, None, counters)
        case _:
            raise AssertionError(f"{event} needs a row")


def _by_a_worker(case: Case, counters: Counters) -> Outcome:
    event = case.event
    match event:
        case Began():
            lease_us = min(event.lease_us, duration_us(case.spec.attempt_timeout)) + event.grace_us
            starts_us = max(case.moment.now_us, case.moment.row_at_us or 0)
            return Outcome(case.status.state, starts_us + lease_us, None, counters)
        case Succeeded():
            counters.succeeded_attempts += 1
            counters.consecutive_failed_attempts = counters.consecutive_interrupted_attempts = 0
            counters.runs += 1
            return _after_an_occurrence(case, counters)
        case Failed():
            return _after_a_failure(case, event, counters)
        case Interrupted():
            return _after_an_interruption(case, event, counters)
        case Expired():
            counters.expired_occurrences += 1
            return _after_an_occurrence(case, counters)
        case Purged():
            return _after_the_retention(case, counters)
        case _:
            raise AssertionError(f"{event} makes a new row")


def _after_a_pause(case: Case, counters: Counters) -> Outcome:
    schedule, now_us = case.spec.schedule, case.moment.now_us
    if case.occurrence_us >= now_us:
        return _same_occurrence(case, counters, case.occurrence_us)
    if not is_on_a_grid(schedule):
        next_us = walk_to_first(schedule, now_us)
        # A run that a user asked for before the start gives way to the start.
        return (
            _same_occurrence(case, counters, now_us)
            if next_us == now_us
            else _occurrence_or_end(case, counters, next_us)
        )
    next_us, missed = walk_to_next(schedule, case.occurrence_us, counters.runs, now_us)
    counters.missed_occurrences += missed + 1
    return _occurrence_or_end(case, counters, next_us)


def _same_occurrence(case: Case, counters: Counters, at_us: int) -> Outcome:
    if case.status.occurrence.failed_attempts or case.status.occurrence.interrupted_attempts:
        return Outcome(action_pb2.RETRYING, at_us, None, counters, goes_on=True)
    return Outcome(action_pb2.SCHEDULED, at_us, at_us, counters, goes_on=True)


def _after_the_retention(case: Case, counters: Counters) -> Outcome:
    status, retention = case.status, case.spec.retention
    if status.state == action_pb2.DELETED:
        return Outcome(status.state, None, None, counters)
    is_success = status.state == action_pb2.SUCCEEDED
    ended = status.end_time if status.HasField("end_time") else status.last_attempt.end_time
    until_us = us_of(ended) + duration_us(retention.after_success if is_success else retention.after_failure)
    return Outcome(status.state, until_us if until_us > case.moment.now_us else None, None, counters)


def _after_an_interruption(case: Case, event: Interrupted, counters: Counters) -> Outcome:
    counters.interrupted_attempts += 1
    if not event.is_suspicious:
        return Outcome(action_pb2.RETRYING, case.moment.now_us, None, counters)
    counters.consecutive_interrupted_attempts += 1
    in_a_row, limit = counters.consecutive_interrupted_attempts, case.spec.interruption_limit
    occurrence = case.status.occurrence
    number = 1 + occurrence.failed_attempts + occurrence.interrupted_attempts + occurrence.superseded_attempts
    if occurrence.lone_attempt == number and limit and in_a_row >= limit:
        return Outcome(action_pb2.PAUSED, END_OF_TIME_US, None, counters)
    delay_us = min(60, 2 ** (max(in_a_row, 2) - 2)) * SECOND_US if is_to_run_alone(case.spec, in_a_row) else 0
    retry_at_us = case.moment.now_us + delay_us
    return Outcome(
        action_pb2.RETRYING, retry_at_us if retry_at_us < END_OF_TIME_US else case.moment.now_us, None, counters
    )


def is_to_run_alone(spec: Spec, interruptions_in_a_row: int) -> bool:
    """From the second interruption in a row on, or when the next one could park it."""
    return interruptions_in_a_row >= (1 if spec.interruption_limit in (1, 2) else 2)


def _after_a_failure(case: Case, event: Failed, counters: Counters) -> Outcome:
    counters.failed_attempts += 1
    counters.consecutive_failed_attempts += 1
    counters.consecutive_interrupted_attempts = 0
    policy, now_us = case.spec.retry, case.moment.now_us
    failures = case.status.occurrence.failed_attempts + 1
    delay_us = event.retry_after_us if event.retry_after_us is not None else round(walk_to_delay(policy, failures))
    retry_at_us = now_us + delay_us
    may_retry = (
        event.retryable
        and (policy.max_attempts == 0 or failures < policy.max_attempts)
        and (not policy.HasField("max_elapsed") or retry_at_us <= _latest_retry_us(case, event))
        and retry_at_us < END_OF_TIME_US
        and not _gives_way(case, retry_at_us)
    )
    if may_retry:
        return Outcome(action_pb2.RETRYING, retry_at_us, None, counters)
    counters.runs += 1
    return _after_an_occurrence(case, counters)


def _latest_retry_us(case: Case, event: Failed) -> int:
    has_been_tried = case.status.occurrence.HasField("first_attempt_time")
    first = case.status.occurrence.first_attempt_time if has_been_tried else event.attempt.start_time
    return us_of(first) + duration_us(case.spec.retry.max_elapsed)


def _gives_way(case: Case, retry_at_us: int) -> bool:
    """Something follows on the grid, something of that is still to come, and the retry would come no earlier."""
    schedule, runs = case.spec.schedule, case.status.counters.runs + 1
    following_us, _ = walk_to_next(schedule, case.occurrence_us, runs, case.occurrence_us)
    coming_us, _ = walk_to_next(schedule, case.occurrence_us, runs, case.moment.now_us)
    if not is_on_a_grid(schedule) or following_us is None or coming_us is None:
        return False
    return retry_at_us >= following_us


def _after_an_occurrence(case: Case, counters: Counters) -> Outcome:
    next_us, missed = walk_to_next(case.spec.schedule, case.occurrence_us, counters.runs, case.moment.now_us)
    counters.missed_occurrences += missed
    return _occurrence_or_end(case, counters, next_us)


def _occurrence_or_end(case: Case, counters: Counters, next_us: int | None) -> Outcome:
    if next_us is not None:
        return Outcome(action_pb2.SCHEDULED, next_us, next_us, counters)
    state = ENDING[type(case.event)]
    retention = case.spec.retention
    kept_us = duration_us(retention.after_success if state == action_pb2.SUCCEEDED else retention.after_failure)
    is_removed = kept_us == 0 and case.moment.row_at_us is not None
    return Outcome(state, None if is_removed else case.moment.now_us + kept_us, None, counters)
