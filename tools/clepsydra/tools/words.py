"""An action in words, for people: what it does, how often, how it stands."""

from clepsydra.core.action.state_machine import ENDED, LIVE
from clepsydra.core.targets import describe_target
from clepsydra.core.times import SECOND_US, duration_us, us_of
from clepsydra.tools.durations import exact
from clepsydra.tools.times import relative, rfc3339, to_the_second
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Periodic, ScheduledAction, Spec, State, Status


def visible(text: str) -> str:
    """A text of somebody else's, in one line: control characters are shown, not obeyed by the terminal.

    >>> visible("a" + chr(27) + "b")
    'a\\\\x1bb'
    """
    return text if text.isprintable() else repr(text)[1:-1]


def state_of(status: Status) -> str:
    """The state by its name in the API.

    >>> state_of(Status(state=action_pb2.RETRYING)), state_of(Status())
    ('RETRYING', 'UNREADABLE')
    """
    if status.state == action_pb2.STATE_UNSPECIFIED:
        return "UNREADABLE"
    return State.Name(status.state) if status.state in State.values() else f"STATE {status.state}"


def target_of(spec: Spec) -> str:
    return visible(describe_target(spec))


def recurrence_of(spec: Spec) -> str:
    """
    >>> recurrence_of(Spec())
    'once'
    """
    if not spec.schedule.HasField("periodic"):
        return "once"
    periodic = spec.schedule.periodic
    parts = [f"every {exact(duration_us(periodic.interval))}"]
    if periodic.mode == Periodic.DRIFT:
        parts.append("after the end of the last run")
    if periodic.HasField("end_time"):
        parts.append(f"until {rfc3339(us_of(periodic.end_time))}")
    if periodic.max_runs:
        parts.append(f"{periodic.max_runs} runs at most")
    return ", ".join(parts)


def when(status: Status, now_us: int) -> str:
    """What comes next, and when."""
    at_us = us_of(status.scheduled_time)
    if status.state in LIVE:
        is_now = 0 <= now_us - at_us < SECOND_US
        return f"{to_the_second(at_us)} ({'now' if is_now else relative(at_us, now_us)})"
    if status.state in ENDED:
        return f"kept until {to_the_second(at_us)}"
    return "-"


def attempt_in_words(attempt: Attempt) -> str:
    outcome = Attempt.Outcome.Name(attempt.outcome).lower() if attempt.outcome in Attempt.Outcome.values() else "?"
    took = us_of(attempt.end_time) - us_of(attempt.start_time)
    words = f"{outcome} at {rfc3339(us_of(attempt.end_time))}, attempt {attempt.number} on {visible(attempt.worker)}"
    words += f", took {exact(max(took, 0))}"
    return f"{words}: {visible(attempt.error)}" if attempt.error else words


def accepted(action: ScheduledAction, now_us: int) -> str:
    """How an action stands after a change, in one line.

    >>> from clepsydra.core.times import timestamp
    >>> status = Status(state=action_pb2.SCHEDULED, scheduled_time=timestamp(5_000_000))
    >>> accepted(ScheduledAction(meta={"id": "hello"}, status=status), 0)
    'hello is scheduled for 1970-01-01T00:00:05Z (in 5s)'
    """
    status = action.status
    preposition = " for" if status.state in LIVE else ","
    described = when(status, now_us)
    return f"{action.meta.id} is {state_of(status).lower()}" + (
        "" if described == "-" else f"{preposition} {described}"
    )
