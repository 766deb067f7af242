"""All that one snapshot says of an action: what the reasons are judged by."""

from collections.abc import Sequence
from functools import cached_property

from clepsydra.core.inspection.running import is_attempts_row, lock_of_writer, running_attempt
from clepsydra.core.limits import LOCK_LIFE_DEFAULT_US
from clepsydra.core.tables import Action, Inspection, LiveRow, LockRow
from clepsydra.core.times import us_of
from clepsydra.v1.action_pb2 import Running, ScheduledAction


class Situation:
    def __init__(self, stored: Action, decoded: ScheduledAction, inspection: Inspection) -> None:
        self.stored = stored
        self.meta = decoded.meta
        self.spec = decoded.spec
        self.status = decoded.status
        self.now_us = inspection.now_us
        self.locks: Sequence[LockRow] = inspection.locks
        self.live: LiveRow | None = inspection.actions[0].live

    @property
    def planned_us(self) -> int:
        return us_of(self.status.scheduled_time)

    @property
    def is_due(self) -> bool:
        return self.planned_us <= self.now_us

    @cached_property
    def running(self) -> Running | None:
        return running_attempt(self.stored, self.status, self.live, self.locks, self.now_us)

    @property
    def has_unfinished_attempt(self) -> bool:
        """An attempt has begun whose end was never written, and its lease is over."""
        return self.live is not None and is_attempts_row(self.live, self.stored) and self.running is None

    @cached_property
    def shard_lock(self) -> LockRow | None:
        """The lock of the shard in which the live row lies."""
        if self.live is None:
            return None
        return next((lock for lock in self.locks if lock.shard_id == self.live.row.shard_id), None)

    @cached_property
    def attempts_worker(self) -> LockRow | None:
        """The newest sign of life of the worker whose attempt the row belongs to."""
        guid = None if self.live is None else self.live.rescheduled_by
        return None if guid is None else lock_of_writer(guid, self.locks)

    def is_alive(self, lock: LockRow) -> bool:
        return lock.locked and self.heartbeat_age_us(lock) <= LOCK_LIFE_DEFAULT_US

    def heartbeat_age_us(self, lock: LockRow) -> int:
        return max(0, self.now_us - lock.heartbeat_at_us)

    @property
    def is_any_worker_alive(self) -> bool:
        return any(map(self.is_alive, self.locks))
