"""The memory of an action: what its status keeps of its last attempts.

`last_attempt` is the newest attempt; `attempts` holds those before it, the newest last. So the status of an action that
succeeds at once has nothing more than before. What the status says elsewhere is not stored twice: an attempt without an
occurrence belongs to the status's occurrence, and one without a planned time was planned for its occurrence. Readers
get one list with everything filled in.
"""

from clepsydra.core.action.spec import REMEMBERED_ATTEMPTS_DEFAULT
from clepsydra.core.times import duration, us_of
from clepsydra.v1.action_pb2 import Attempt, Spec, Status

# All attempts before the last one together, with the head of each.
EARLIER_ATTEMPTS_BYTES = 6 * 1024 - 64
_HEAD_BYTES = 3
_ELLIPSIS = "…"


def remember(spec: Spec, status: Status, attempt: Attempt) -> None:
    """The attempt for which the status had planned a time has ended: keep it, and forget the oldest."""
    limit = spec.remembered_attempts or REMEMBERED_ATTEMPTS_DEFAULT
    if status.HasField("last_attempt"):
        keep_occurrence(status)
        status.attempts.append(_shortened(status.last_attempt, EARLIER_ATTEMPTS_BYTES // limit - _HEAD_BYTES))
        excess = len(status.attempts) + 1 - limit
        if excess > 0:
            del status.attempts[:excess]
    status.last_attempt.CopyFrom(attempt)
    if status.scheduled_time != status.occurrence_time:
        status.last_attempt.scheduled_time.CopyFrom(status.scheduled_time)


def keep_occurrence(status: Status) -> None:
    """The status is about to get another occurrence or attempt: write down which occurrence the last attempt had."""
    if status.HasField("last_attempt") and not status.last_attempt.HasField("occurrence_time"):
        status.last_attempt.occurrence_time.CopyFrom(status.occurrence_time)


def show_attempts(status: Status) -> None:
    """Give a status, in place, the form that readers get: one list of all attempts, with everything filled in."""
    if not status.HasField("last_attempt"):
        return
    keep_occurrence(status)
    _fill_in(status.last_attempt)
    for earlier in status.attempts:
        _fill_in(earlier)
    status.attempts.append(status.last_attempt)


def take_attempts(spec: Spec, status: Status) -> None:
    """The reverse of `show_attempts`: give a status that was shown, in place, the form that is stored."""
    if status.attempts and not status.HasField("last_attempt"):
        status.last_attempt.CopyFrom(status.attempts[-1])
    if not status.HasField("last_attempt"):
        return
    if status.attempts and status.attempts[-1] == status.last_attempt:
        del status.attempts[-1]
    limit = spec.remembered_attempts or REMEMBERED_ATTEMPTS_DEFAULT
    earlier = list(status.attempts)[max(0, len(status.attempts) + 1 - limit) :]
    for attempt in (*earlier, status.last_attempt):
        attempt.ClearField("lateness")
        if attempt.scheduled_time == attempt.occurrence_time:
            attempt.ClearField("scheduled_time")
    if status.last_attempt.occurrence_time == status.occurrence_time:
        status.last_attempt.ClearField("occurrence_time")
    size = EARLIER_ATTEMPTS_BYTES // limit - _HEAD_BYTES
    shortened = [_shortened(attempt, size) for attempt in earlier]
    del status.attempts[:]
    status.attempts.extend(shortened)


def _fill_in(attempt: Attempt) -> None:
    if not attempt.HasField("scheduled_time"):
        attempt.scheduled_time.CopyFrom(attempt.occurrence_time)
    attempt.lateness.CopyFrom(duration(max(0, us_of(attempt.start_time) - us_of(attempt.scheduled_time))))


def _shortened(attempt: Attempt, size: int) -> Attempt:
    """An attempt that is not the last one any more: without its id, its texts cut to fit into this many bytes."""
    earlier = Attempt()
    earlier.CopyFrom(attempt)
    earlier.ClearField("id")
    excess = earlier.ByteSize() - size
    if excess > 0:
        error, worker = earlier.error.encode(), earlier.worker.encode()
        # The error is cut first, but never to less than half of what there is for both.
        room = len(error) + len(worker) - excess
        earlier.error = _cut(error, max(room - len(worker), room // 2))
        earlier.worker = _cut(worker, room - len(earlier.error.encode()))
    return earlier


def _cut(text: bytes, size: int) -> str:
    """
    >>> _cut(b"connection refused", 13)
    'connection…'
    """
    if len(text) <= size:
        return text.decode()
    return text[: max(0, size - len(_ELLIPSIS.encode()))].decode(errors="ignore") + _ELLIPSIS
