"""An action for people: its state, its next time, its recurrence, its target."""

from typing import cast

from clepsydra.core.action.state_machine import ENDED, LIVE, kept_until_us
from clepsydra.core.targets import describe_target
from clepsydra.core.times import SECOND_US, duration_us, us_of
from clepsydra.tools.format.durations import exact_duration
from clepsydra.tools.format.text import printable
from clepsydra.tools.format.times import relative_time, rfc3339, to_the_second
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Counters, Periodic, Running, ScheduledAction, Spec, State


def format_state(state: int) -> str:
    """The name of a state in the API.

    >>> format_state(action_pb2.RETRYING), format_state(action_pb2.STATE_UNSPECIFIED)
    ('RETRYING', 'UNREADABLE')
    """
    if state == action_pb2.STATE_UNSPECIFIED:
        return "UNREADABLE"
    return State.Name(cast("State", state)) if state in State.values() else f"STATE {state}"


def format_next(action: ScheduledAction, now_us: int) -> str:
    """The time of the next attempt; for an ended action, how long it is kept."""
    status = action.status
    at_us = us_of(status.scheduled_time)
    if status.state in LIVE:
        is_now = 0 <= now_us - at_us < SECOND_US
        return f"{to_the_second(at_us)} ({'now' if is_now else relative_time(at_us, now_us)})"
    if status.state in ENDED:
        return f"kept until {to_the_second(kept_until_us(action.spec, status))}"
    return "-"


def format_running(running: Running, now_us: int) -> str:
    """
    >>> from clepsydra.core.times import timestamp
    >>> times = {"start_time": timestamp(0), "lease_end_time": timestamp(9_000_000)}
    >>> running = Running(worker="web-1", attempt_number=2, **times)
    >>> format_running(running, 3_000_000)
    'attempt 2 on web-1 since 1970-01-01T00:00:00Z (3s ago), leased until 1970-01-01T00:00:09Z'
    """
    worker = f" on {printable(running.worker)}" if running.worker else ""
    since_us, lease_us = us_of(running.start_time), us_of(running.lease_end_time)
    since = f"{to_the_second(since_us)} ({relative_time(since_us, now_us)})"
    return f"attempt {running.attempt_number}{worker} since {since}, leased until {to_the_second(lease_us)}"


def format_recurrence(spec: Spec) -> str:
    """
    >>> format_recurrence(Spec())
    'once'
    """
    if not spec.schedule.HasField("periodic"):
        return "once"
    periodic = spec.schedule.periodic
    parts = [f"every {exact_duration(duration_us(periodic.interval))}"]
    if periodic.mode == Periodic.DRIFT:
        parts.append("after the end of the last run")
    if periodic.HasField("end_time"):
        parts.append(f"until {rfc3339(us_of(periodic.end_time))}")
    if periodic.max_runs:
        parts.append(f"{periodic.max_runs} runs at most")
    return ", ".join(parts)


def format_target(spec: Spec) -> str:
    return printable(describe_target(spec))


def format_counters(counters: Counters) -> str:
    """The counters that are not zero.

    >>> format_counters(Counters(runs=2, succeeded_attempts=3))
    'succeeded attempts: 3, runs: 2'
    """
    return (
        ", ".join(f"{field.name.replace('_', ' ')}: {number}" for field, number in counters.ListFields()) or "none yet"
    )


def format_plan_effect(action: ScheduledAction) -> str:
    """What an update did to the plan of an action.

    >>> format_plan_effect(ScheduledAction(plan_effect=ScheduledAction.KEPT))
    'the plan is kept'
    """
    status, effect = action.status, action.plan_effect
    if effect == ScheduledAction.PLANNED_AFRESH:
        is_paused = status.state == action_pb2.PAUSED
        planned = to_the_second(us_of(status.scheduled_time))
        return "planned afresh, and paused" if is_paused else f"planned afresh for {planned}"
    again = f"; to run it again: clepsydra run {action.meta.id}" if status.state in ENDED else ""
    if effect == ScheduledAction.KEPT_IN_NEW_LIFE:
        return f"the target changed: the plan goes on under a new life{again}"
    return f"the plan is kept{again}"


def format_change(action: ScheduledAction, now_us: int) -> str:
    """The state of an action after a change, in one line.

    >>> from clepsydra.core.times import timestamp
    >>> status = action_pb2.Status(state=action_pb2.SCHEDULED, scheduled_time=timestamp(5_000_000))
    >>> format_change(ScheduledAction(meta={"id": "hello"}, status=status), 0)
    'hello is scheduled for 1970-01-01T00:00:05Z (in 5s)'
    """
    status = action.status
    line = f"{action.meta.id} is {format_state(status.state).lower()}"
    next_time = format_next(action, now_us)
    if next_time == "-":
        return line
    return f"{line} for {next_time}" if status.state in LIVE else f"{line}, {next_time}"
