"""Whether an attempt runs now. Nothing is written when an attempt begins but its row's time: so the row tells.

A row at the time that its action is planned for waits; a row at a later time belongs to an attempt, until that time.
"""

from collections.abc import Iterable, Sequence

from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.state_machine import LIVE
from clepsydra.core.ids import is_extension, is_same_worker
from clepsydra.core.limits import GRACE_MAX_US, LEASE_MAX_US
from clepsydra.core.tables import Action, LiveRow, LockRow, Queue
from clepsydra.core.times import SECOND_US, duration_us, set_us, us_of
from clepsydra.v1.action_pb2 import Running, ScheduledAction, Status

# The clock that chooses what to look at may be a little behind the store's.
_SLACK_US = 10 * SECOND_US


def may_be_running(status: Status, now_us: int) -> bool:
    """Whether it is worth a look: no attempt begins before its time."""
    return status.state in LIVE and us_of(status.scheduled_time) <= now_us + _SLACK_US


def leased_until_us(actions: Iterable[ScheduledAction], now_us: int) -> int:
    """No row of an attempt at one of these actions lies later."""
    timeout_us = max((duration_us(action.spec.attempt_timeout) for action in actions), default=0)
    return now_us + min(timeout_us, LEASE_MAX_US) + GRACE_MAX_US + _SLACK_US


def is_attempts_row(live: LiveRow, action: Action) -> bool:
    """Whether an attempt has begun, and its end is not written: it runs, or its worker has died."""
    row = live.row
    return row.queue is Queue.PROCESSING and live.rescheduled_by is not None and row.at_us != action.scheduled_at_us


def running_attempt(
    action: Action, status: Status, live: LiveRow | None, locks: Sequence[LockRow], now_us: int
) -> Running | None:
    """The attempt that runs now, if any."""
    if live is None or status.state not in LIVE or not is_attempts_row(live, action) or live.row.at_us <= now_us:
        return None
    lock = lock_of_writer(live.rescheduled_by or "", locks)
    running = Running(attempt_number=attempt_number(status), worker="" if lock is None else lock.locked_by)
    set_us(running.start_time, began_at_us(live, action))
    set_us(running.lease_end_time, live.row.at_us)
    return running


def began_at_us(live: LiveRow, action: Action) -> int:
    """When the attempt of the row began; once an extension has overwritten that, the earliest time that it can be."""
    began_us = live.row.rescheduled_at_us
    if began_us is not None and not is_extension(live.rescheduled_by or ""):
        return began_us
    # No attempt begins before its time, or before there was a row to begin.
    return max(action.scheduled_at_us, live.added_at_us, live.moved_at_us or 0)


def lock_of_writer(guid: str, locks: Iterable[LockRow]) -> LockRow | None:
    """A lock that the worker which wrote under this guid holds, or held last; the one with the newest heartbeat."""
    its_locks = [lock for lock in locks if is_same_worker(lock.guid, guid)]
    return max(its_locks, key=lambda lock: lock.heartbeat_at_us, default=None)
