"""What belongs to an occurrence, whichever life of the action its attempts run in: its key and their numbers.

The idempotency key is made when an occurrence is planned. A status without one means the key that its own life gives,
so that an action that is never changed stores none. A change by a user that starts a new life and goes on with the same
occurrence keeps the key.
"""

from clepsydra.core.times import us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status

_WITH_OCCURRENCE = frozenset({action_pb2.SCHEDULED, action_pb2.RETRYING, action_pb2.PAUSED})


def key_in_life(guid: str, occurrence_us: int) -> str:
    """The key of an occurrence that was planned in this life.

    >>> key_in_life("5f1c", 7)
    '5f1c-7'
    """
    return f"{guid}-{occurrence_us}"


def idempotency_key(status: Status, guid: str) -> str:
    """The same for every attempt at the current occurrence, and for nothing else."""
    return status.occurrence.idempotency_key or key_in_life(guid, us_of(status.occurrence_time))


def attempt_number(status: Status) -> int:
    """The number of the next attempt within its occurrence."""
    occurrence = status.occurrence
    return occurrence.failed_attempts + occurrence.interrupted_attempts + occurrence.superseded_attempts + 1


def had_attempts(status: Status) -> bool:
    """Whether an attempt at the current occurrence has ended. A superseded one may never have begun."""
    return bool(status.occurrence.failed_attempts or status.occurrence.interrupted_attempts)


def keep_key(status: Status, guid: str) -> None:
    """Write the key of the current occurrence, if there is one, into the status of this life: it goes on elsewhere."""
    if status.state in _WITH_OCCURRENCE:
        status.occurrence.idempotency_key = idempotency_key(status, guid)


def carry_over(status: Status, guid: str, now_us: int) -> None:
    """Prepare the status of this life, in place, for a life that may go on with its occurrence.

    The scheduler does not read queues, so it does not know whether an attempt is running. If the planned time has come,
    one may be: it is counted, so that no two attempts at an occurrence have the same number.
    """
    if status.state not in _WITH_OCCURRENCE:
        return
    status.occurrence.idempotency_key = idempotency_key(status, guid)
    if status.state != action_pb2.PAUSED and us_of(status.scheduled_time) <= now_us:
        status.occurrence.superseded_attempts += 1
