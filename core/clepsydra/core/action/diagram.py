"""Draws the state machine by running it: `python -m clepsydra.core.action.diagram` prints what docs/state-machine.md
shows.

There is no list of transitions here. A few specs, which together reach every rule, go through all that users and
workers can do to them, and every change of state that `step` returns becomes an arrow.
"""

import sys
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

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
from clepsydra.core.action.state_machine import ALLOWED_STATES, Moment, decide, step
from clepsydra.core.action.suspicion import is_running_alone
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US, YEAR_US, duration, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Once, Periodic, Retention, RetryPolicy, Schedule, Spec, Status

START_US = DAY_US
NOWHERE = "[*]"

_ATTEMPT = Attempt(end_time=timestamp(START_US))
BY_USERS: tuple[Event, ...] = (
    Accepted(),
    TargetChanged(),
    Paused(),
    Resumed(),
    RunRequested(),
    Cancelled(),
    Deleted(MINUTE_US),
)
BY_WORKERS: dict[Decision, tuple[Event, ...]] = {
    Decision.BEGIN: (Began(MINUTE_US, SECOND_US),),
    Decision.EXPIRE: (Expired(),),
    # A row at the end of a lease: the attempt ended before that, or its outcome was never written.
    Decision.INTERRUPT: (
        Succeeded(_ATTEMPT),
        Failed(_ATTEMPT),
        Failed(_ATTEMPT, retryable=False),
        Interrupted(_ATTEMPT),
    ),
    Decision.PURGE: (Purged(),),
    Decision.WAIT: (),
}

# From a state to a state: the names of the events that lead there.
Arrows = dict[tuple[str, str], set[str]]


class Standing(NamedTuple):
    """What the machine knows of an action between two events."""

    status: Status
    row_at_us: int | None
    now_us: int

    def kind(self) -> tuple[int, ...]:
        """Standings of one kind lead to the same states, so one of them is enough."""
        counters, occurrence = self.status.counters, self.status.occurrence
        is_waiting = self.row_at_us == us_of(self.status.scheduled_time)
        # More attempts, or interruptions in a row, than the limits of the specs make no difference.
        attempts = (occurrence.failed_attempts, occurrence.interrupted_attempts)
        suspicion = (counters.consecutive_interrupted_attempts, is_running_alone(self.status))
        return (self.status.state, is_waiting, *(min(n, 3) for n in (*attempts, *suspicion, counters.runs)))


def markdown() -> str:
    """Two Mermaid diagrams of one state machine, because one with every arrow would be hard to read."""
    by_users = {type(event).__name__ for event in BY_USERS}
    drawn = arrows()
    return "\n".join(
        [
            "What users do:",
            "",
            *_mermaid({states: events & by_users for states, events in drawn.items()}),
            "",
            "What workers do:",
            "",
            *_mermaid({states: events - by_users for states, events in drawn.items()}),
            "",
        ]
    )


def arrows() -> Arrows:
    """Every change of state that the machine makes."""
    found: Arrows = {}
    for spec in _specs():
        _explore(spec, found)
    return found


def _mermaid(drawn: Arrows) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    for (source, target), events in sorted(drawn.items(), key=lambda arrow: [_rank(name) for name in arrow[0]]):
        if events:
            yield f"    {source} --> {target}: {', '.join(sorted(events, key=_EVENT_NAMES.index))}"
    yield "```"


def _specs() -> Iterator[Spec]:
    """Once, forever and until an end; with and without retention; given up after one or two failures."""
    start, interval = timestamp(START_US), duration(HOUR_US)
    schedules = (
        Schedule(start_time=start, once=Once()),
        Schedule(start_time=start, periodic=Periodic(interval=interval)),
        Schedule(start_time=start, periodic=Periodic(interval=interval, end_time=timestamp(START_US + DAY_US))),
    )
    for schedule, kept_us, limit in product(schedules, (0, DAY_US), (1, 2)):
        yield Spec(
            schedule=schedule,
            retry=RetryPolicy(first_delay=duration(SECOND_US), max_delay=duration(HOUR_US), max_attempts=limit),
            attempt_timeout=duration(MINUTE_US),
            start_deadline=duration(MINUTE_US),
            retention=Retention(after_success=duration(kept_us), after_failure=duration(kept_us)),
            interruption_limit=limit,
        )


def _explore(spec: Spec, found: Arrows) -> None:
    waiting = [Standing(Status(), None, START_US)]
    seen = set()
    while waiting:
        standing = waiting.pop()
        if standing.kind() in seen:
            continue
        seen.add(standing.kind())
        for wanted, event, moment in _possible(spec, standing):
            result = step(wanted, standing.status, event, moment)
            source = _name(standing.status)
            target = NOWHERE if result.at_us is None else _name(result.status)
            found.setdefault((source, target), set()).add(type(event).__name__)
            if result.at_us is not None:
                waiting.append(Standing(result.status, result.at_us, moment.now_us))


def _possible(spec: Spec, standing: Standing) -> Iterator[tuple[Spec, Event, Moment]]:
    """What users and workers can do next, soon or after some days."""
    status, row_at_us, now_us = standing
    for wait_us in (0, 3 * DAY_US):
        for event in BY_USERS:
            if status.state in ALLOWED_STATES[type(event)]:
                yield spec, event, Moment(now_us + wait_us)
        if row_at_us is not None:
            due_us = max(now_us, row_at_us) + wait_us
            for event in BY_WORKERS[decide(spec, status, row_at_us, due_us)]:
                yield spec, event, Moment(due_us, row_at_us)
                if isinstance(event, Purged):
                    yield _kept_longer(spec), event, Moment(due_us, row_at_us)


def _kept_longer(spec: Spec) -> Spec:
    """The spec after a user has made the retention longer."""
    changed = Spec()
    changed.CopyFrom(spec)
    changed.retention.CopyFrom(Retention(after_success=duration(YEAR_US), after_failure=duration(YEAR_US)))
    return changed


def _name(status: Status) -> str:
    return action_pb2.State.Name(status.state) if status.state else NOWHERE


_EVENT_NAMES = [event.__name__ for event in ALLOWED_STATES]


def _rank(name: str) -> int:
    """The order of the states in the .proto file, after the start and end."""
    return 0 if name == NOWHERE else action_pb2.State.Value(name)


if __name__ == "__main__":
    sys.stdout.write(markdown())
