"""Shard locks for an operator: which worker holds each shard, and what waits there."""

from enum import Enum
from typing import Any, NamedTuple

from clepsydra.core.wording import rounded_duration
from clepsydra.store.port import LockInfo
from clepsydra.tools.format.times import relative_time, rfc3339, to_the_second

COLUMN_NAMES = ("SHARD", "STATE", "BY", "SINCE", "HEARTBEAT", "WAITING", "OLDEST DUE", "RUNNING", "KEPT")
RIGHT_ALIGNED = ("SHARD", "WAITING", "RUNNING", "KEPT")


class ShardState(Enum):
    FREE = "free"
    HELD = "held"
    # The last heartbeat is older than the life of a lock: the next worker takes the shard over.
    STALE = "stale"


class Shard(NamedTuple):
    """A shard lock at one time."""

    lock: LockInfo
    now_us: int
    lock_life_us: int

    @property
    def state(self) -> ShardState:
        if not self.lock.locked:
            return ShardState.FREE
        return ShardState.STALE if self._heartbeat_age_us > self.lock_life_us else ShardState.HELD

    def cells(self) -> list[str]:
        """A row of a table."""
        lock = self.lock
        load = lock.load
        oldest = "-" if load.next_us is None else relative_time(load.next_us, self.now_us)
        cells = [f"{load.waiting:,}", oldest, f"{load.running:,}", f"{load.kept:,}"]
        if not lock.locked:
            return [f"{lock.shard_id}", self.state.value, "-", "-", "-", *cells]
        return [
            f"{lock.shard_id}",
            self.state.value,
            lock.locked_by,
            to_the_second(lock.processing_start_at_us),
            f"{rounded_duration(max(self._heartbeat_age_us, 0))} ago",
            *cells,
        ]

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields."""
        lock = self.lock
        return {
            "shard": lock.shard_id,
            "state": self.state.value,
            "by": lock.locked_by if lock.locked else None,
            "since": rfc3339(lock.processing_start_at_us) if lock.locked else None,
            "heartbeat_age_ms": self._heartbeat_age_us // 1000 if lock.locked else None,
            "waiting": lock.load.waiting,
            "next_time": None if lock.load.next_us is None else rfc3339(lock.load.next_us),
            "running": lock.load.running,
            "kept": lock.load.kept,
            "incoming_rows": lock.incoming_rows,
            "processing_rows": lock.processing_rows,
            "earliest_time": None if lock.earliest_us is None else rfc3339(lock.earliest_us),
        }

    @property
    def _heartbeat_age_us(self) -> int:
        return self.now_us - self.lock.heartbeat_at_us
