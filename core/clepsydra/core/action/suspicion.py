"""Suspicion: which of the actions that a dead worker had in hand has killed it?

An interruption is evidence, not proof: a process died with many attempts in hand. So the culprit is found by
elimination:

- after the first interruption all of them are begun again at once, because most deaths have nothing to do with any;
- whatever is interrupted again, in a row, is a *suspect*: it is tried with backoff, and runs as the only suspect of its
  process, which its status records before it runs;
- an action is parked if its attempts were interrupted `interruption_limit` times in a row, and it was the only suspect
  at the last of them. It is paused, with the reason, until a user resumes it.

Any outcome that is written clears an action: its worker survived it. So does a user who runs, resumes or changes it.
"""

from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.times import MINUTE_US, SECOND_US
from clepsydra.v1.action_pb2 import Spec, Status

# After this many interruptions in a row an action runs alone; or after one less than its limit, if that is less.
_INTERRUPTIONS_TOGETHER = 2

_FIRST_DELAY_US = SECOND_US
_LONGEST_DELAY_US = MINUTE_US
_DOUBLINGS_MAX = 6


def runs_alone(spec: Spec, status: Status) -> bool:
    """Whether the next attempt must be that of the only suspect in its process."""
    interruptions = status.counters.consecutive_interrupted_attempts
    if interruptions == 0:
        return False
    limit = spec.interruption_limit
    return interruptions >= _INTERRUPTIONS_TOGETHER or 0 < limit <= interruptions + 1


def is_running_alone(status: Status) -> bool:
    """Whether the attempt in flight was begun as that of the only suspect."""
    return status.occurrence.lone_attempt == attempt_number(status)


def record_lone_attempt(status: Status) -> None:
    status.occurrence.lone_attempt = attempt_number(status)


def is_guilty(spec: Spec, status: Status, *, was_alone: bool) -> bool:
    """After an interruption that is counted: whether this action is what kills its workers."""
    return was_alone and 0 < spec.interruption_limit <= status.counters.consecutive_interrupted_attempts


def delay_us(spec: Spec, status: Status) -> int:
    """How long an interrupted action waits before it is tried again.

    >>> from clepsydra.v1.action_pb2 import Counters
    >>> interrupted = [Status(counters=Counters(consecutive_interrupted_attempts=n)) for n in (1, 2, 3, 4, 99)]
    >>> [delay_us(Spec(interruption_limit=100), status) // SECOND_US for status in interrupted]
    [0, 1, 2, 4, 60]
    """
    if not runs_alone(spec, status):
        return 0
    again = max(0, status.counters.consecutive_interrupted_attempts - _INTERRUPTIONS_TOGETHER)
    return min(_LONGEST_DELAY_US, _FIRST_DELAY_US << min(again, _DOUBLINGS_MAX))


def clear(status: Status) -> None:
    # Setting it would give a status counters that has none.
    if status.counters.consecutive_interrupted_attempts:
        status.counters.consecutive_interrupted_attempts = 0


def reason_for_parking(spec: Spec, status: Status) -> str:
    deaths = status.counters.consecutive_interrupted_attempts
    times = "once" if deaths == 1 else f"{deaths} times in a row"
    return (
        f"parked: the worker died {times} while it ran {_name(spec)}, at last with no other suspect in its hands; "
        "resume it when that is mended"
    )


def _name(spec: Spec) -> str:
    kind = spec.WhichOneof("target")
    return f'handler "{spec.handler.name}"' if kind == "handler" else f"its {kind} target"
