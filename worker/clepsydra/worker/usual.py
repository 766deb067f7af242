"""The usual attempt, in few steps: the first at an action that calls a handler once, all else left to the defaults.

Such an action is recognised by its bytes, and neither its spec nor its status is decoded; if the attempt succeeds, what
is written is put together from encoded parts (`core/usual.py`). Every other attempt, and every other end of this one,
is judged by the state machine.
"""

from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.moments import END_OF_TIME_US, MILLISECOND_US
from clepsydra.core.usual import (
    KEPT_US,
    course_of,
    encoded_time,
    first_success,
    handler_in,
    planned_time,
    succeeded,
)
from clepsydra.store.port import Action, Advance, Row
from clepsydra.store.tuples import advance_of
from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.attempt import Attempt


def usual_request(row: Row, action: Action) -> tuple[PythonHandler, bytes] | None:
    """What the handler is asked for, and the encoded time that it was planned for; None if it is not usual."""
    if row.scheduled_at_us != action.scheduled_at_us:
        return None
    planned = planned_time(action.status)
    handler = None if planned is None else handler_in(action.spec)
    if planned is None or handler is None:
        return None
    try:
        return PythonHandler.FromString(handler), planned
    except DecodeError:
        return None


class Ended(NamedTuple):
    """When attempts have ended, and until when their actions are kept; both also encoded, once for all of them."""

    us: int
    encoded: bytes
    kept_until_us: int
    encoded_kept_until: bytes


def ended_at(us: int) -> Ended:
    """Rounded up to a millisecond: attempts end by the hundred within one."""
    return _ended(-(-us // MILLISECOND_US) * MILLISECOND_US)


@lru_cache(1)
def _ended(us: int) -> Ended:
    return Ended(us, encoded_time(us), us + KEPT_US, encoded_time(us + KEPT_US))


def usual_success(attempt: Attempt, ended: Ended) -> Advance | None:
    """What the success of such an attempt means for its action; None: the state machine must tell."""
    planned, row = attempt.planned, attempt.row
    _, end, kept_until_us, kept_until = ended
    # Where clocks went astray, the row's next time takes some thought.
    if planned is None or not row.at_us < kept_until_us < END_OF_TIME_US:
        return None
    course = _course(attempt.worker, attempt.started_us, end)
    status = succeeded(planned, first_success(attempt.id.encode(), course), kept_until)
    return advance_of((row, kept_until_us, attempt.action.scheduled_at_us, status, kept_until_us))


@lru_cache(16)
def _course(worker: str, started_us: int, end: bytes) -> bytes:
    """Attempts start and end by the hundred at the same moment."""
    return course_of(worker.encode(), encoded_time(started_us), end)
