"""The state machine: what an event means for an action, as one pure function.

`step` maps (spec, status, event, moment) to the new status and the next time of the action's row. No time means that
the action and its row are removed. The guard of the stores relies on two properties of `step`:

- within a life, every new status plans a later time than the one before (by a microsecond if need be), so that
  `status_scheduled_at` is a version of the status;
- a row never moves to its own time, so that the row's key is a version of the row.

`decide` says what to do with a row that has come due.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from clepsydra.core.action.events import (
    Accepted,
    Began,
    Cancelled,
    Decision,
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
from clepsydra.core.action.memory import keep_occurrence, remember
from clepsydra.core.action.occurrence import had_attempts
from clepsydra.core.action.retry import attempts_are_used_up, requested_delay_us, retry_delay_us, would_take_too_long
from clepsydra.core.action.schedule import Next, first_occurrence, next_occurrence, resumed_occurrence, retry_gives_way
from clepsydra.core.action.suspicion import (
    clear,
    delay_us,
    is_guilty,
    is_running_alone,
    reason_for_parking,
    record_lone_attempt,
    runs_alone,
)
from clepsydra.core.times import END_OF_TIME_US, duration_us, set_us, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Spec, Status

LIVE = frozenset({action_pb2.SCHEDULED, action_pb2.RETRYING})
ENDED = frozenset({action_pb2.SUCCEEDED, action_pb2.FAILED, action_pb2.EXPIRED, action_pb2.CANCELLED})
KEPT = ENDED | {action_pb2.DELETED}


class Step(NamedTuple):
    """The result of an event: the new status, and the next time of the row. No time: both are removed."""

    status: Status
    at_us: int | None


class Moment(NamedTuple):
    """The circumstances of an event."""

    now_us: int
    # The time of the row that the event moves. None: the event makes a new row, as every change by a user does.
    row_at_us: int | None = None
    # A random number from 0 up to 1, for the jitter of retries.
    fraction: float = 0.5


class ImpossibleEvent(Exception):
    """The event has no meaning in the action's state: the caller did not ask `decide`, or a check is missing."""


def step(spec: Spec, status: Status, event: Event, moment: Moment) -> Step:
    """What an event means for an action. Neither spec nor status is changed."""
    kind = type(event)
    if status.state not in ALLOWED_STATES[kind]:
        raise ImpossibleEvent(f"{kind.__name__} means nothing to an action that is {_name_of(status.state)}")
    return _TRANSITIONS[kind](spec, status, event, moment)


def decide(spec: Spec, status: Status, row_at_us: int, now_us: int) -> Decision:
    """What to do with a live row that has come due."""
    state = status.state
    if state not in LIVE:
        return Decision.PURGE if state in KEPT else Decision.WAIT
    if row_at_us != us_of(status.scheduled_time):
        return Decision.INTERRUPT
    if _start_deadline_has_passed(spec, status, now_us):
        return Decision.EXPIRE
    return Decision.BEGIN


def _accepted(spec: Spec, _status: Status, _event: Accepted, moment: Moment) -> Step:
    return _plan_if_any(spec, Status(), first_occurrence(spec.schedule, moment.now_us), moment)


def _target_changed(_spec: Spec, status: Status, _event: TargetChanged, _moment: Moment) -> Step:
    changed = _copy(status)
    clear(changed)
    return Step(changed, us_of(status.scheduled_time))


def _paused(_spec: Spec, status: Status, _event: Paused, moment: Moment) -> Step:
    return _hold(_copy(status), moment, "")


def _resumed(spec: Spec, status: Status, _event: Resumed, moment: Moment) -> Step:
    resumed = _copy(status)
    clear(resumed)
    occurrence_us = us_of(status.occurrence_time)
    following = resumed_occurrence(spec.schedule, occurrence_us, status.counters.runs, moment.now_us)
    resumed.counters.missed_occurrences += following.missed
    if following == Next(max(occurrence_us, moment.now_us), 0):
        return _plan_again(resumed, max(occurrence_us, moment.now_us), moment)
    return _plan_if_any(spec, resumed, following.at_us, moment)


def _run_requested(_spec: Spec, status: Status, _event: RunRequested, moment: Moment) -> Step:
    requested = _copy(status)
    clear(requested)
    return _plan_occurrence(requested, moment.now_us, moment)


def _cancelled(spec: Spec, status: Status, event: Cancelled, moment: Moment) -> Step:
    cancelled = _copy(status)
    counters = cancelled.counters
    counters.cancelled_occurrences += 1
    if event.attempt is not None:
        remember(spec, cancelled, event.attempt)
        counters.cancelled_attempts += 1
    return _go_on(spec, cancelled, moment, action_pb2.CANCELLED, "a user cancelled it")


def _deleted(_spec: Spec, status: Status, event: Deleted, moment: Moment) -> Step:
    tombstone = _copy(status)
    tombstone.state = action_pb2.DELETED
    return _plan(tombstone, moment.now_us + event.retention_us, moment)


def _began(spec: Spec, status: Status, event: Began, moment: Moment) -> Step:
    lease_us = min(duration_us(spec.attempt_timeout), event.lease_us) + event.grace_us
    assert moment.row_at_us is not None, "an attempt begins with a row"
    ends_us = max(moment.now_us, moment.row_at_us) + lease_us
    if not runs_alone(spec, status):
        return Step(status, ends_us)
    alone = _copy(status)
    record_lone_attempt(alone)
    _plan(alone, us_of(status.scheduled_time), moment)
    return Step(alone, ends_us)


def _succeeded(spec: Spec, status: Status, event: Succeeded, moment: Moment) -> Step:
    done = _copy(status)
    remember(spec, done, event.attempt)
    counters = done.counters
    counters.succeeded_attempts += 1
    counters.consecutive_failed_attempts = 0
    clear(done)
    counters.runs += 1
    return _go_on(spec, done, moment, action_pb2.SUCCEEDED, "")


def _failed(spec: Spec, status: Status, event: Failed, moment: Moment) -> Step:
    failed = _copy(status)
    remember(spec, failed, event.attempt)
    counters = failed.counters
    counters.failed_attempts += 1
    counters.consecutive_failed_attempts += 1
    clear(failed)
    occurrence = failed.occurrence
    occurrence.failed_attempts += 1
    if not occurrence.HasField("first_attempt_time"):
        occurrence.first_attempt_time.CopyFrom(event.attempt.start_time)
    if event.retry_after_us is None:
        wait_us = retry_delay_us(spec.retry, occurrence.failed_attempts, moment.fraction)
    else:
        wait_us = requested_delay_us(event.retry_after_us)
    retry_at_us = moment.now_us + wait_us
    given_up = _why_no_retry(spec, failed, event, moment, retry_at_us)
    if given_up is None:
        failed.state = action_pb2.RETRYING
        return _plan(failed, retry_at_us, moment)
    counters.runs += 1
    return _go_on(spec, failed, moment, action_pb2.FAILED, given_up)


def _why_no_retry(spec: Spec, status: Status, event: Failed, moment: Moment, retry_at_us: int) -> str | None:
    if not event.retryable:
        return event.attempt.error or "the target asked not to be tried again"
    if attempts_are_used_up(spec.retry, status.occurrence.failed_attempts):
        return "the retry policy's attempts are used up"
    if would_take_too_long(spec.retry, us_of(status.occurrence.first_attempt_time), retry_at_us):
        return "the retry policy's time is used up"
    if retry_at_us >= END_OF_TIME_US:
        return "the next retry would lie beyond the end of time"
    occurrence_us = us_of(status.occurrence_time)
    if retry_gives_way(spec.schedule, occurrence_us, status.counters.runs + 1, moment.now_us, retry_at_us):
        return "the next occurrence comes first"
    return None


def _interrupted(spec: Spec, status: Status, event: Interrupted, moment: Moment) -> Step:
    interrupted = _copy(status)
    remember(spec, interrupted, event.attempt)
    counters = interrupted.counters
    counters.interrupted_attempts += 1
    interrupted.occurrence.interrupted_attempts += 1
    if not interrupted.occurrence.HasField("first_attempt_time"):
        interrupted.occurrence.first_attempt_time.CopyFrom(event.attempt.start_time)
    interrupted.state, retry_at_us = action_pb2.RETRYING, moment.now_us
    if event.is_suspicious:
        counters.consecutive_interrupted_attempts += 1
        if is_guilty(spec, interrupted, was_alone=is_running_alone(status)):
            return _hold(interrupted, moment, reason_for_parking(spec, interrupted))
        retry_at_us += delay_us(spec, interrupted)
    return _plan(interrupted, retry_at_us if retry_at_us < END_OF_TIME_US else moment.now_us, moment)


def _expired(spec: Spec, status: Status, _event: Expired, moment: Moment) -> Step:
    expired = _copy(status)
    expired.counters.expired_occurrences += 1
    return _go_on(spec, expired, moment, action_pb2.EXPIRED, "it could not start within its start deadline")


def _purged(spec: Spec, status: Status, _event: Purged, moment: Moment) -> Step:
    if status.state in ENDED:
        kept_us = _retention_end_us(spec, status)
        if kept_us > moment.now_us:
            # A user made the retention longer since the action ended.
            return _plan(_copy(status), kept_us, moment)
    return _remove(_copy(status), moment)


def kept_until_us(spec: Spec, status: Status) -> int:
    """When an action that has ended is purged. A retention that was made shorter since then moves nothing."""
    return max(_retention_end_us(spec, status), us_of(status.scheduled_time))


def _retention_end_us(spec: Spec, status: Status) -> int:
    ended = status.end_time if status.HasField("end_time") else status.last_attempt.end_time
    return us_of(ended) + _retention_us(spec, status.state)


def _go_on(spec: Spec, status: Status, moment: Moment, ending: action_pb2.State, reason: str) -> Step:
    """The occurrence has ended: plan the next one, or end the action with the given state."""
    schedule = spec.schedule
    if schedule.HasField("periodic"):
        occurrence_us = us_of(status.occurrence_time)
        following = next_occurrence(schedule, occurrence_us, status.counters.runs, moment.now_us)
        status.counters.missed_occurrences += following.missed
        if following.at_us is not None:
            return _plan_occurrence(status, following.at_us, moment)
    return _end(spec, status, moment, ending, reason)


def _end(spec: Spec, status: Status, moment: Moment, ending: action_pb2.State, reason: str) -> Step:
    status.state = ending
    status.reason = reason
    if ending in (action_pb2.EXPIRED, action_pb2.CANCELLED):
        set_us(status.end_time, moment.now_us)
    kept_us = _retention_us(spec, ending)
    # A change by a user always makes a row; a worker purges it as soon as it sees it.
    if kept_us == 0 and moment.row_at_us is not None:
        return _remove(status, moment)
    return _plan(status, moment.now_us + kept_us, moment)


def _retention_us(spec: Spec, ending: int) -> int:
    retention = spec.retention
    return duration_us(retention.after_success if ending == action_pb2.SUCCEEDED else retention.after_failure)


def _remove(status: Status, moment: Moment) -> Step:
    """Remove the action; or leave a tombstone while calls that made an earlier life may still be retried."""
    if moment.now_us >= us_of(status.removable_time):
        return Step(status, None)
    status.state = action_pb2.DELETED
    return _plan(status, us_of(status.removable_time), moment)


def _hold(status: Status, moment: Moment, reason: str) -> Step:
    """Until a user resumes it."""
    status.state = action_pb2.PAUSED
    status.reason = reason
    return _plan(status, END_OF_TIME_US, moment)


def _plan_if_any(spec: Spec, status: Status, at_us: int | None, moment: Moment) -> Step:
    if at_us is None:
        return _end(spec, status, moment, action_pb2.EXPIRED, "no occurrence of it is left")
    return _plan_occurrence(status, at_us, moment)


def _plan_occurrence(status: Status, at_us: int, moment: Moment) -> Step:
    """Plan an occurrence that has had no attempt."""
    keep_occurrence(status)
    status.reason = ""
    status.ClearField("occurrence")
    status.ClearField("end_time")
    status.state = action_pb2.SCHEDULED
    set_us(status.occurrence_time, at_us)
    return _plan(status, at_us, moment)


def _plan_again(status: Status, at_us: int, moment: Moment) -> Step:
    """Go on with the same occurrence: its key and its attempts stay."""
    status.reason = ""
    if had_attempts(status):
        status.state = action_pb2.RETRYING
    else:
        # The start deadline counts from here: the user who resumes an action wants it to start.
        keep_occurrence(status)
        status.state = action_pb2.SCHEDULED
        set_us(status.occurrence_time, at_us)
    return _plan(status, at_us, moment)


def _plan(status: Status, at_us: int, moment: Moment) -> Step:
    """Plan a time that is later than any the status had, and that is not the row's own."""
    at_us, planned = min(at_us, END_OF_TIME_US), status.scheduled_time
    if moment.row_at_us is not None:
        at_us = max(at_us, us_of(planned) + 1)
        if at_us == moment.row_at_us:
            at_us += 1
    set_us(planned, at_us)
    return Step(status, at_us)


def _start_deadline_has_passed(spec: Spec, status: Status, now_us: int) -> bool:
    if not spec.HasField("start_deadline") or had_attempts(status):
        return False
    return now_us > us_of(status.occurrence_time) + duration_us(spec.start_deadline)


def _copy(status: Status) -> Status:
    copied = Status()
    copied.CopyFrom(status)
    return copied


def _name_of(state: int) -> str:
    # A newer version may have written a state that this version has no name for.
    return action_pb2.State.Name(state) if state in action_pb2.State.values() else str(state)


_ANY_STATE = frozenset(action_pb2.State.values())

# The states in which an event can happen. The diagram in docs/ is drawn from this table and from `step` itself.
ALLOWED_STATES: dict[type[Any], frozenset[int]] = {
    Accepted: _ANY_STATE,
    TargetChanged: LIVE | ENDED | {action_pb2.PAUSED},
    Paused: LIVE,
    Resumed: frozenset({action_pb2.PAUSED}),
    RunRequested: LIVE | ENDED,
    Cancelled: LIVE,
    Deleted: LIVE | ENDED | {action_pb2.PAUSED},
    Began: LIVE,
    Succeeded: LIVE,
    Failed: LIVE,
    Interrupted: LIVE,
    Expired: frozenset({action_pb2.SCHEDULED}),
    Purged: KEPT,
}

_TRANSITIONS: dict[type[Any], Callable[[Spec, Status, Any, Moment], Step]] = {
    Accepted: _accepted,
    TargetChanged: _target_changed,
    Paused: _paused,
    Resumed: _resumed,
    RunRequested: _run_requested,
    Cancelled: _cancelled,
    Deleted: _deleted,
    Began: _began,
    Succeeded: _succeeded,
    Failed: _failed,
    Interrupted: _interrupted,
    Expired: _expired,
    Purged: _purged,
}
