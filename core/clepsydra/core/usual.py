"""The usual life of an action, in its encoded form: a handler is called once, and all else is left to the defaults.

What the state machine comes to in such a life is known beforehand but for a few times and names. So it is recognised
by its bytes and put together from encoded parts (`wire.py`), without building, copying and encoding messages for every
action. Nothing is decided here: whatever is not usual goes through `transitions.step`, and `tests/unit/test_usual.py`
holds this file to the same bytes. docs/decisions/0007 and 0008 say why there are two ways.
"""

from functools import lru_cache

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core import limits
from clepsydra.core.defaults import ENCODED_DEFAULTS
from clepsydra.core.moments import set_us
from clepsydra.core.wire import Heads
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Counters, Once, Schedule, Spec, Status

TIMEOUT_US = limits.ATTEMPT_TIMEOUT_DEFAULT_US
KEPT_US = limits.RETENTION_AFTER_SUCCESS_DEFAULT_US

_SCHEDULE, _HANDLER = Heads(Spec.SCHEDULE_FIELD_NUMBER), Heads(Spec.HANDLER_FIELD_NUMBER)
_START_TIME = Heads(Schedule.START_TIME_FIELD_NUMBER)
# What stands between the start time and the handler, in the order in which protobuf encodes fields.
_ONCE = Schedule(once=Once()).SerializeToString()
_ONCE_BY_DEFAULT = _ONCE + ENCODED_DEFAULTS
_SHORT = 0x7F
_SCHEDULE_TAG, _START_TIME_TAG = _SCHEDULE[0][0], _START_TIME[0][0]

_SCHEDULED_TIME = Heads(Status.SCHEDULED_TIME_FIELD_NUMBER)
_OCCURRENCE_TIME = Heads(Status.OCCURRENCE_TIME_FIELD_NUMBER)
_IS_SCHEDULED = Status(state=action_pb2.SCHEDULED).SerializeToString()
# What stands before the length of the time that it is planned for.
_WAITS = _IS_SCHEDULED + _SCHEDULED_TIME[0][:1]
_HAS_SUCCEEDED = Status(state=action_pb2.SUCCEEDED).SerializeToString()
_ONE_SUCCESS = Status(counters=Counters(succeeded_attempts=1, runs=1)).SerializeToString()

_LAST_ATTEMPT = Heads(Status.LAST_ATTEMPT_FIELD_NUMBER)
_FIRST = action_pb2.Attempt(number=1).SerializeToString()
_ATTEMPT_ID, _WORKER = Heads(action_pb2.Attempt.ID_FIELD_NUMBER), Heads(action_pb2.Attempt.WORKER_FIELD_NUMBER)
_START, _END = Heads(action_pb2.Attempt.START_TIME_FIELD_NUMBER), Heads(action_pb2.Attempt.END_TIME_FIELD_NUMBER)
_SUCCESS = action_pb2.Attempt(outcome=action_pb2.Attempt.SUCCESS).SerializeToString()

assert len(_ONCE) == 2, "as a head"
assert KEPT_US > 0, "a success that is not kept would be removed, and has no status"


def encoded_time(us: int) -> bytes:
    """A Timestamp."""
    moment = Timestamp()
    set_us(moment, us)
    return moment.SerializeToString()


def spec_of(start: bytes, handler: bytes) -> bytes:
    """The spec with which a handler is called once, from a start time on."""
    head = _START_TIME[len(start)]
    schedule = _SCHEDULE[len(head) + len(start) + len(_ONCE)]
    return b"".join((schedule, head, start, _ONCE_BY_DEFAULT, _HANDLER[len(handler)], handler))


def handler_in(spec: bytes) -> bytes | None:
    """The handler, if `spec_of` has made the spec, or could have."""
    if len(spec) <= len(_ONCE_BY_DEFAULT):
        return None
    # The schedule ends with `once`, which is as long as the schedule's head: so what follows begins at its size.
    size = spec[1] + len(_ONCE_BY_DEFAULT)
    return _only(_HANDLER, spec[size:]) if _is_beginning(spec[:size]) else None


@lru_cache(256)
def _is_beginning(spec: bytes) -> bool:
    """Whether this is what stands before the handler; many actions have the same start time."""
    if len(spec) <= len(_ONCE_BY_DEFAULT) or spec[0] != _SCHEDULE_TAG or spec[2] != _START_TIME_TAG:
        return False
    # The schedule is the start time, with its two bytes of head, and `once`; both are so short that a byte tells how.
    size = spec[1]
    is_usual = spec[3] + 2 + len(_ONCE) == size <= _SHORT and spec[size:] == _ONCE_BY_DEFAULT
    return is_usual and _is_time(spec[4:size])


def _is_time(encoded: bytes) -> bool:
    """Whether it can be decoded: what is taken for usual is not looked at until something else becomes of it."""
    try:
        Timestamp.FromString(encoded)
    except DecodeError:
        return False
    return True


def _only(heads: Heads, encoded: bytes) -> bytes | None:
    """What a message says that has this field and no other."""
    if len(encoded) < 2:
        return None
    size = 2
    while len(encoded) - size >= 1 << 7 * (size - 1):
        size += 1
    return encoded[size:] if encoded[:size] == heads[len(encoded) - size] else None


def planned(at: bytes) -> bytes:
    """The status of an action that waits for the first attempt at its only occurrence."""
    length = len(at)
    return b"".join((_IS_SCHEDULED, _SCHEDULED_TIME[length], at, _OCCURRENCE_TIME[length], at))


@lru_cache(256)
def planned_time(status: bytes) -> bytes | None:
    """When that is, if `planned` has made the status, or could have. Many actions wait for the same time."""
    if len(status) <= len(_WAITS):
        return None
    start = len(_WAITS) + 1
    end = start + status[start - 1]
    at = status[start:end]
    is_usual = status.startswith(_WAITS) and status[end:] == _OCCURRENCE_TIME[len(at)] + at and _is_time(at)
    return at if is_usual else None


def succeeded(at: bytes, attempt: bytes, kept: bytes) -> bytes:
    """The status of an action whose first attempt has succeeded, and which is kept until a time."""
    return b"".join(
        (
            _HAS_SUCCEEDED,
            _SCHEDULED_TIME[len(kept)],
            kept,
            _OCCURRENCE_TIME[len(at)],
            at,
            _ONE_SUCCESS,
            _LAST_ATTEMPT[len(attempt)],
            attempt,
        )
    )


def first_success(attempt_id: bytes, course: bytes) -> bytes:
    """The record of that attempt."""
    return b"".join((_FIRST, _ATTEMPT_ID[len(attempt_id)], attempt_id, course))


def course_of(worker: bytes, start: bytes, end: bytes) -> bytes:
    """What the records of all attempts have in common that one worker has begun and ended at the same moments."""
    return b"".join((_START[len(start)], start, _END[len(end)], end, _WORKER[len(worker)], worker, _SUCCESS))
