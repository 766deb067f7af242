"""Every state, every event, and the product of everything in spec, status and moment that bears on the event.

Each case is compared with the oracle, and is held to what the stores' guard relies on whatever the oracle says.
"""

from collections.abc import Iterator
from itertools import product

import pytest

from clepsydra.core.action.diagram import NOWHERE, arrows
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
from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.state_machine import ENDED, KEPT, LIVE, ImpossibleEvent, Moment, Step, decide, step
from clepsydra.core.times import DAY_US, END_OF_TIME_US, HOUR_US, SECOND_US, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Counters, Occurrence, Schedule, Spec, State, Status
from tests.unit.oracle import Case, is_to_run_alone, outcome_of
from tests.unit.specs import NOON_US, drift, fixed_rate, once, retry_policy, spec_of
from tests.unit.walks import is_on_a_grid, last_us

INTERVAL_US = 10 * SECOND_US
# The grid starts here; the second is so near to the end of time that retries, purges and occurrences reach beyond it.
STARTS_US = (NOON_US, END_OF_TIME_US - 3 * INTERVAL_US)
# Where the action stands, from the start of its grid: on the grid; off it, run by a user; before its start, likewise.
OCCURRENCES_US = (2 * INTERVAL_US, 2 * INTERVAL_US + 3 * SECOND_US, -3 * SECOND_US)
RETRY_US = 4 * SECOND_US
LEASE_US = 7 * SECOND_US
RUNS = 1

ATTEMPT = Attempt(number=1, id="attempt", worker="worker", start_time=timestamp(NOON_US), error="why")
EVENTS: dict[str, list[Event]] = {
    "Accepted": [Accepted()],
    "TargetChanged": [TargetChanged()],
    "Paused": [Paused()],
    "Resumed": [Resumed()],
    "RunRequested": [RunRequested()],
    "Cancelled": [Cancelled(), Cancelled(ATTEMPT)],
    "Deleted": [Deleted(30 * SECOND_US), Deleted(DAY_US)],
    "Began": [Began(30 * SECOND_US, 5 * SECOND_US), Began(1, 1)],
    "Succeeded": [Succeeded(ATTEMPT)],
    "Failed": [
        Failed(ATTEMPT),
        Failed(ATTEMPT, retryable=False),
        *(Failed(ATTEMPT, retry_after_us=wish_us) for wish_us in (0, HOUR_US)),
    ],
    "Interrupted": [Interrupted(ATTEMPT), Interrupted(ATTEMPT, is_suspicious=False)],
    "Expired": [Expired()],
    "Purged": [Purged()],
}
BY_USERS = (Accepted, TargetChanged, Paused, Resumed, RunRequested, Cancelled, Deleted)

# In which states an event has a meaning, as a table that a person has checked.
MEANINGFUL = """
              STATE_UNSPECIFIED SCHEDULED RETRYING PAUSED SUCCEEDED FAILED EXPIRED DELETED CANCELLED
Accepted      yes               yes       yes      yes    yes       yes    yes     yes     yes
TargetChanged -                 yes       yes      yes    yes       yes    yes     -       yes
Paused        -                 yes       yes      -      -         -      -       -       -
Resumed       -                 -         -        yes    -         -      -       -       -
RunRequested  -                 yes       yes      -      yes       yes    yes     -       yes
Cancelled     -                 yes       yes      -      -         -      -       -       -
Deleted       -                 yes       yes      yes    yes       yes    yes     -       yes
Began         -                 yes       yes      -      -         -      -       -       -
Succeeded     -                 yes       yes      -      -         -      -       -       -
Failed        -                 yes       yes      -      -         -      -       -       -
Interrupted   -                 yes       yes      -      -         -      -       -       -
Expired       -                 yes       -        -      -         -      -       -       -
Purged        -                 -         -        -      yes       yes    yes     yes     yes
"""


def _meaningful() -> dict[tuple[str, str], bool]:
    header, *lines = (line.split() for line in MEANINGFUL.strip().splitlines())
    return {(event, state): mark == "yes" for event, *marks in lines for state, mark in zip(header, marks, strict=True)}


def test_the_table_names_every_state_and_every_event() -> None:
    table = _meaningful()
    assert {state for _, state in table} == set(State.keys())
    assert {event for event, _ in table} == set(EVENTS) == {event.__name__ for event in Event.__args__}


@pytest.mark.parametrize(("event", "state"), [key for key, is_meaningful in _meaningful().items() if not is_meaningful])
def test_an_event_without_a_meaning_is_refused(event: str, state: str) -> None:
    for status, each in product(_statuses(state, NOON_US), EVENTS[event]):
        for moment in _moments(each, status):
            with pytest.raises(ImpossibleEvent):
                step(spec_of(once()), status, each, moment)


@pytest.mark.parametrize(("event", "state"), [key for key, is_meaningful in _meaningful().items() if is_meaningful])
def test_every_case(event: str, state: str) -> None:
    targets = set()
    for start_us in STARTS_US:
        specs, statuses = _specs(event, start_us), list(_statuses(state, start_us, event))
        before = _written_down(*specs, *statuses, ATTEMPT)
        for spec, status, each in product(specs, statuses, EVENTS[event]):
            for moment in _moments(each, status):
                result = _checked_step(Case(spec, status, each, moment))
                targets.add(NOWHERE if result.at_us is None else State.Name(result.status.state))
                if moment.row_at_us not in (None, us_of(status.scheduled_time)) and result.at_us is not None:
                    # The same with a lease that ends at the very time that the row would move to.
                    _checked_step(Case(spec, status, each, moment._replace(row_at_us=result.at_us)))
        assert _written_down(*specs, *statuses, ATTEMPT) == before, "an input was changed"
    assert targets == _drawn_targets(event, state)


def _drawn_targets(event: str, state: str) -> set[str]:
    """Where the event leads according to the diagram: it shows all that can happen, and nothing else."""
    source = NOWHERE if state == "STATE_UNSPECIFIED" else state
    return {target for (drawn_source, target), events in arrows().items() if drawn_source == source and event in events}


def _checked_step(case: Case) -> Step:
    result = step(*case)
    _check_against_the_oracle(case, result)
    _check_the_attempt(case, result)
    _check_the_guard(case, result)
    _check_the_decision(case, result)
    return result


def _written_down(*messages: Spec | Status | Attempt) -> list[bytes]:
    return [message.SerializeToString(deterministic=True) for message in messages]


def _specs(event: str, start_us: int) -> list[Spec]:
    """Variants of what the event looks at; the rest stays at one value."""
    is_ending = event in ("Accepted", "Resumed", "Succeeded", "Failed", "Expired", "Cancelled")
    schedules = [once(start_us), *(periodic(INTERVAL_US, start_us=start_us) for periodic in (fixed_rate, drift))]
    if is_ending and start_us == NOON_US:
        schedules += _limited_schedules(start_us)
    return [
        spec_of(
            schedule,
            retry=retry_policy(max_attempts=max_attempts, max_elapsed_us=max_elapsed_us),
            attempt_timeout_us=timeout_us,
            start_deadline_us=INTERVAL_US,
            keep_success_us=kept_us,
            keep_failure_us=2 * kept_us,
            interruption_limit=limit,
        )
        for schedule, (max_attempts, max_elapsed_us), timeout_us, kept_us, limit in product(
            schedules,
            [(0, None), (1, None), (3, None), (0, 5 * SECOND_US)] if event == "Failed" else [(0, None)],
            (SECOND_US, HOUR_US) if event == "Began" else (HOUR_US,),
            (0, DAY_US) if is_ending or event == "Purged" else (DAY_US,),
            (0, 1, 2, 3) if event in ("Began", "Interrupted") else (0,),
        )
    ]


def _limited_schedules(start_us: int) -> Iterator[Schedule]:
    """Ending now, soon, or never; with one run too many under way, the last one, the last but one, or no limit."""
    for periodic, intervals, max_runs in product((fixed_rate, drift), (2, 5, None), (RUNS, RUNS + 1, RUNS + 2, 0)):
        if (intervals, max_runs) != (None, 0):
            end_us = None if intervals is None else start_us + intervals * INTERVAL_US
            yield periodic(INTERVAL_US, start_us=start_us, end_us=end_us, max_runs=max_runs)


def _statuses(state: str, start_us: int, event: str = "") -> Iterator[Status]:
    if state == "STATE_UNSPECIFIED":
        yield Status()
        return
    # Attempts at the occurrence, for an action that is RETRYING, or at the ones before.
    histories = [(1, 0), (0, 1), (2, 1)] if state == "RETRYING" else [(0, 0), (2, 1)]
    looks_at_interruptions = event in ("Began", "Interrupted")
    if looks_at_interruptions and state == "RETRYING":
        histories += [(0, 2), (0, 9)]
    for offset_us, (failed, interrupted) in product(OCCURRENCES_US, histories):
        occurrence_us = start_us + offset_us
        planned_us = {
            "SCHEDULED": occurrence_us,
            "RETRYING": occurrence_us + RETRY_US,
            "PAUSED": END_OF_TIME_US,
        }.get(state, min(occurrence_us + DAY_US, END_OF_TIME_US))
        status = Status(
            state=state,
            scheduled_time=timestamp(planned_us),
            occurrence_time=timestamp(occurrence_us),
            last_attempt=Attempt(number=9, id="before", end_time=timestamp(occurrence_us)),
            counters=Counters(
                succeeded_attempts=3,
                failed_attempts=5,
                interrupted_attempts=7,
                consecutive_failed_attempts=failed,
                consecutive_interrupted_attempts=interrupted,
                runs=RUNS,
                missed_occurrences=11,
                expired_occurrences=13,
            ),
            reason="it ended" if state in ("SUCCEEDED", "FAILED", "EXPIRED", "CANCELLED") else "",
        )
        if looks_at_interruptions and state == "SCHEDULED" and interrupted:
            # A user cancelled the occurrence before, and the next one began as that of the only suspect.
            alone = Status()
            alone.CopyFrom(status)
            alone.occurrence.lone_attempt = 1
            yield alone
        if state == "RETRYING":
            status.occurrence.failed_attempts = failed
            status.occurrence.interrupted_attempts = interrupted
            status.occurrence.first_attempt_time.CopyFrom(timestamp(occurrence_us))
            if looks_at_interruptions and failed == 0:
                # The same with an attempt that began as that of the only suspect.
                alone = Status()
                alone.CopyFrom(status)
                alone.occurrence.lone_attempt = interrupted + 1
                yield alone
        elif state == "PAUSED":
            status.occurrence.MergeFrom(Occurrence(failed_attempts=failed, idempotency_key="k", superseded_attempts=1))
        elif state in ("EXPIRED", "CANCELLED"):
            status.end_time.CopyFrom(timestamp(occurrence_us))
        yield status


def _moments(event: Event, status: Status) -> Iterator[Moment]:
    """A clock behind the plan; on time; late within the interval, at the very next occurrence, by many intervals."""
    occurrence_us = us_of(status.occurrence_time) or NOON_US
    planned_us = us_of(status.scheduled_time)
    nows_us = {
        occurrence_us - 1,
        occurrence_us,
        occurrence_us + RETRY_US + 1,
        occurrence_us + INTERVAL_US,
        occurrence_us + INTERVAL_US + 1,
        occurrence_us + 9 * INTERVAL_US + 1,
    }
    rows_us: tuple[int | None, ...] = (planned_us, planned_us + LEASE_US)
    if isinstance(event, BY_USERS):
        rows_us = (None,)
    elif isinstance(event, Purged):
        nows_us = {planned_us - 1, planned_us, planned_us + 9 * DAY_US}
        rows_us = (planned_us,)
    for now_us, row_at_us in product(sorted(nows_us), rows_us):
        if now_us < END_OF_TIME_US:
            yield Moment(now_us, row_at_us)


def _check_against_the_oracle(case: Case, result: Step) -> None:
    expected = outcome_of(case)
    status = result.status
    assert status.state == expected.state, case
    assert status.counters == expected.counters, case
    assert (result.at_us is None) == (expected.wanted_us is None), case
    if expected.wanted_us is not None:
        assert result.at_us == _moved_out_of_the_way(case, expected.wanted_us), case
    if expected.goes_on:
        assert status.occurrence == case.status.occurrence, case
        assert status.reason == "", case
    if expected.occurrence_us is not None:
        assert us_of(status.occurrence_time) == expected.occurrence_us, case
        assert expected.goes_on or not status.HasField("occurrence"), case
        assert status.reason == "", case
        assert not status.HasField("end_time"), case
        _check_the_limits(case, status)
    elif not isinstance(case.event, Accepted):
        assert status.occurrence_time == case.status.occurrence_time, case


def _check_the_attempt(case: Case, result: Step) -> None:
    """An attempt is remembered as the last one, and as one of its occurrence for as long as that goes on."""
    if isinstance(case.event, Accepted):
        assert not result.status.HasField("last_attempt"), case
        return
    given: Attempt | None = getattr(case.event, "attempt", None)
    before = _with_occurrence(case.status.last_attempt, case.status)
    if given is None:
        assert result.status.last_attempt in (case.status.last_attempt, before), case
        assert not result.status.attempts, case
        return
    attempt = Attempt() if case.planned_us == case.occurrence_us else Attempt(scheduled_time=case.status.scheduled_time)
    attempt.MergeFrom(given)
    goes_on = result.status.occurrence_time != case.status.occurrence_time
    assert result.status.last_attempt == (_with_occurrence(attempt, case.status) if goes_on else attempt), case
    before.ClearField("id")
    assert list(result.status.attempts) == [before], case
    if result.status.state == action_pb2.RETRYING:
        earlier, after = case.status.occurrence, result.status.occurrence
        assert after.failed_attempts - earlier.failed_attempts == isinstance(case.event, Failed), case
        assert after.interrupted_attempts - earlier.interrupted_attempts == isinstance(case.event, Interrupted), case
        first = earlier.first_attempt_time if earlier.HasField("first_attempt_time") else given.start_time
        assert after.first_attempt_time == first, case


def _with_occurrence(attempt: Attempt, status: Status) -> Attempt:
    complete = Attempt(occurrence_time=status.occurrence_time)
    complete.MergeFrom(attempt)
    return complete


def _check_the_limits(case: Case, planned: Status) -> None:
    """The schedule plans nothing after the end time and nothing beyond the runs; a user's wish may."""
    schedule, occurrence_us = case.spec.schedule, us_of(planned.occurrence_time)
    if not schedule.HasField("periodic") or isinstance(case.event, RunRequested) or occurrence_us == case.occurrence_us:
        return
    assert occurrence_us <= last_us(schedule), case
    is_carried_out_late = isinstance(case.event, Resumed) and not is_on_a_grid(schedule)
    if schedule.periodic.max_runs and not is_carried_out_late:
        assert planned.counters.runs < schedule.periodic.max_runs, case


def _moved_out_of_the_way(case: Case, wanted_us: int) -> int:
    """Within a life, later than any time the status had, and never where the row lies."""
    if isinstance(case.event, Began):
        return wanted_us
    wanted_us = min(wanted_us, END_OF_TIME_US)
    if case.moment.row_at_us is not None:
        wanted_us = max(wanted_us, case.planned_us + 1)
        wanted_us += wanted_us == case.moment.row_at_us
    return wanted_us


def _check_the_guard(case: Case, result: Step) -> None:
    """What makes a row's key, and `status_scheduled_at`, a version."""
    now_us, row_at_us = case.moment.now_us, case.moment.row_at_us
    if isinstance(case.event, Began):
        assert row_at_us is not None
        _check_the_begin(case, result.status)
        assert result.at_us is not None, case
        assert result.at_us > max(now_us, row_at_us, case.planned_us), case
    elif result.at_us is None:
        assert row_at_us is not None, "a user's change makes a row"
        assert isinstance(case.event, Purged) or result.status.state in ENDED, case
    else:
        # Out of the way of a row at the very end of time there is only the microsecond after it.
        assert result.at_us == us_of(result.status.scheduled_time) <= END_OF_TIME_US + (row_at_us == END_OF_TIME_US)
        assert result.at_us != row_at_us, case
        assert row_at_us is None or result.at_us > case.planned_us, case


def _check_the_begin(case: Case, begun: Status) -> None:
    """Only a suspect's status is written, so that it says, before the attempt runs, that it runs alone."""
    if not is_to_run_alone(case.spec, case.status.counters.consecutive_interrupted_attempts):
        assert begun == case.status, case
        return
    expected = Status()
    expected.CopyFrom(case.status)
    expected.occurrence.lone_attempt = attempt_number(case.status)
    planned_us = us_of(begun.scheduled_time)
    assert planned_us > case.planned_us, case
    assert planned_us != case.moment.row_at_us, case
    expected.scheduled_time.CopyFrom(begun.scheduled_time)
    assert begun == expected, case


def _check_the_decision(case: Case, result: Step) -> None:
    """What the row will ask for at its next time is what its state says."""
    if result.at_us is None:
        return
    decision = decide(case.spec, result.status, result.at_us, result.at_us)
    if isinstance(case.event, Began):
        assert decision is Decision.INTERRUPT, case
    elif result.status.state in KEPT:
        assert decision is Decision.PURGE, case
    else:
        assert decision is (Decision.BEGIN if result.status.state in LIVE else Decision.WAIT), case
