"""The encoded spec and status of an action that calls a handler once, and how they are recognised."""

from functools import lru_cache

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core.action.spec import DEFAULTS
from clepsydra.core.encoding import FieldHeads
from clepsydra.core.times import set_us
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Counters, Once, Schedule, Spec, Status

_SCHEDULE = FieldHeads(Spec.SCHEDULE_FIELD_NUMBER)
_HANDLER = FieldHeads(Spec.HANDLER_FIELD_NUMBER)
_START_TIME = FieldHeads(Schedule.START_TIME_FIELD_NUMBER)
_ONCE = Schedule(once=Once()).SerializeToString()


def _encoded_defaults(first: int, last: int) -> bytes:
    """The defaults of the fields with these numbers, in the order in which protobuf encodes them."""
    chosen = Spec()
    chosen.CopyFrom(DEFAULTS)
    for field, _ in DEFAULTS.ListFields():
        if not first <= field.number <= last:
            chosen.ClearField(field.name)
    return chosen.SerializeToString()


_BEFORE_HANDLER = _encoded_defaults(Spec.SCHEDULE_FIELD_NUMBER, Spec.HANDLER_FIELD_NUMBER)
_AFTER_HANDLER = _encoded_defaults(Spec.HANDLER_FIELD_NUMBER, 2**29)
_ONCE_BEFORE_HANDLER = _ONCE + _BEFORE_HANDLER

_ONE_BYTE_LENGTH_MAX = 0x7F
_HEAD_LENGTH = 2
_SCHEDULE_TAG, _START_TIME_TAG, _HANDLER_TAG = _SCHEDULE[0][0], _START_TIME[0][0], _HANDLER[0][0]
# What a schedule has beside the start time itself.
_SCHEDULE_OVERHEAD = _HEAD_LENGTH + len(_ONCE)
_BEYOND_SCHEDULE = _HEAD_LENGTH + len(_BEFORE_HANDLER)

_SCHEDULED_TIME = FieldHeads(Status.SCHEDULED_TIME_FIELD_NUMBER)
_OCCURRENCE_TIME = FieldHeads(Status.OCCURRENCE_TIME_FIELD_NUMBER)
_IS_SCHEDULED = Status(state=action_pb2.SCHEDULED).SerializeToString()
_BEFORE_SCHEDULED_TIME = _IS_SCHEDULED + _SCHEDULED_TIME[0][:1]
_HAS_SUCCEEDED = Status(state=action_pb2.SUCCEEDED).SerializeToString()
_ONE_SUCCESS = Status(counters=Counters(succeeded_attempts=1, runs=1)).SerializeToString()

_LAST_ATTEMPT = FieldHeads(Status.LAST_ATTEMPT_FIELD_NUMBER)
_FIRST_ATTEMPT = Attempt(number=1).SerializeToString()
_ATTEMPT_ID, _WORKER = FieldHeads(Attempt.ID_FIELD_NUMBER), FieldHeads(Attempt.WORKER_FIELD_NUMBER)
_START, _END = FieldHeads(Attempt.START_TIME_FIELD_NUMBER), FieldHeads(Attempt.END_TIME_FIELD_NUMBER)
_SUCCESS = Attempt(outcome=Attempt.SUCCESS).SerializeToString()

assert not {field.number for field, _ in DEFAULTS.ListFields()} & {Spec.SCHEDULE_FIELD_NUMBER}, "it comes first"


def encode_time(us: int) -> bytes:
    """A Timestamp."""
    timestamp = Timestamp()
    set_us(timestamp, us)
    return timestamp.SerializeToString()


def encode_spec(start: bytes, handler: bytes) -> bytes:
    """The spec that calls a handler once, from a start time on; both parts are encoded."""
    length = len(start)
    heads = _SCHEDULE[length + _SCHEDULE_OVERHEAD] + _START_TIME[length]
    return b"".join((heads, start, _ONCE_BEFORE_HANDLER, _HANDLER[len(handler)], handler, _AFTER_HANDLER))


def handler_in(spec: bytes) -> bytes | None:
    """The encoded handler, if the spec is one that `encode_spec` returns."""
    if len(spec) < _HEAD_LENGTH:
        return None
    # The schedule is so short that its length is one byte.
    at = spec[1] + _BEYOND_SCHEDULE
    if len(spec) <= at or spec[at] != _HANDLER_TAG or not _is_before_handler(spec[:at]):
        return None
    if _AFTER_HANDLER:
        if not spec.endswith(_AFTER_HANDLER, at):
            return None
        spec = spec[: -len(_AFTER_HANDLER)]
    return _only_field(_HANDLER, spec[at:])


@lru_cache(256)
def _is_before_handler(encoded: bytes) -> bool:
    """Whether this precedes the handler in such a spec. Cached, because many actions have the same start time."""
    schedule_ends = _HEAD_LENGTH + encoded[1]
    schedule = encoded[_HEAD_LENGTH:schedule_ends]
    if encoded[0] != _SCHEDULE_TAG or encoded[1] > _ONE_BYTE_LENGTH_MAX or encoded[schedule_ends:] != _BEFORE_HANDLER:
        return False
    start_ends = len(schedule) - len(_ONCE)
    if start_ends < _HEAD_LENGTH or schedule[0] != _START_TIME_TAG or schedule[1] != start_ends - _HEAD_LENGTH:
        return False
    return schedule[start_ends:] == _ONCE and _is_time(schedule[_HEAD_LENGTH:start_ends])


def _is_time(encoded: bytes) -> bool:
    """Whether it can be decoded: nobody else looks at it until something uncommon happens to the action."""
    try:
        Timestamp.FromString(encoded)
    except DecodeError:
        return False
    return True


def _only_field(heads: FieldHeads, encoded: bytes) -> bytes | None:
    """The content of a field, if the message has that field and no other."""
    head_length = _HEAD_LENGTH
    while len(encoded) - head_length >= 1 << 7 * (head_length - 1):
        head_length += 1
    return encoded[head_length:] if encoded[:head_length] == heads[len(encoded) - head_length] else None


def encode_waiting_status(at: bytes) -> bytes:
    """The status of an action that waits for the first attempt at its only occurrence, at this encoded time."""
    length = len(at)
    return b"".join((_IS_SCHEDULED, _SCHEDULED_TIME[length], at, _OCCURRENCE_TIME[length], at))


@lru_cache(256)
def waiting_time(status: bytes) -> bytes | None:
    """The encoded time, if the status is one that `encode_waiting_status` returns."""
    start = len(_BEFORE_SCHEDULED_TIME) + 1
    if len(status) < start or not status.startswith(_BEFORE_SCHEDULED_TIME):
        return None
    end = start + status[start - 1]
    at = status[start:end]
    return at if status[end:] == _OCCURRENCE_TIME[len(at)] + at and _is_time(at) else None


def encode_success_status(at: bytes, attempt: bytes, kept_until: bytes) -> bytes:
    """The status of an action whose first attempt has succeeded, and which is kept until a time."""
    return b"".join(
        (
            _HAS_SUCCEEDED,
            _SCHEDULED_TIME[len(kept_until)],
            kept_until,
            _OCCURRENCE_TIME[len(at)],
            at,
            _ONE_SUCCESS,
            _LAST_ATTEMPT[len(attempt)],
            attempt,
        )
    )


def encode_first_success(attempt_id: bytes, after_id: bytes) -> bytes:
    """The message of that attempt; `after_id` is what `encode_after_id` returns."""
    return b"".join((_FIRST_ATTEMPT, _ATTEMPT_ID[len(attempt_id)], attempt_id, after_id))


def encode_after_id(worker: bytes, start: bytes, end: bytes) -> bytes:
    """What is the same in the messages of all attempts that one worker started and ended at the same times."""
    return b"".join((_START[len(start)], start, _END[len(end)], end, _WORKER[len(worker)], worker, _SUCCESS))
