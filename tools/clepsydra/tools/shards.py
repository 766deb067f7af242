"""The shard locks as an operator looks at them: who works on what, and what waits there."""

from enum import Enum
from typing import Any, NamedTuple

from clepsydra.store.port import LockInfo
from clepsydra.tools.durations import brief
from clepsydra.tools.times import relative, rfc3339, to_the_second

COLUMNS = ("SHARD", "STATE", "BY", "SINCE", "HEARTBEAT", "WAITING", "OLDEST DUE")
RIGHT = ("SHARD", "WAITING")


class ShardState(Enum):
    FREE = "free"
    HELD = "held"
    # Held by a worker that has not been heard of for longer than a lock lives: the next worker takes it over.
    STALE = "stale"


class Shard(NamedTuple):
    """A shard lock at a moment."""

    lock: LockInfo
    now_us: int
    lock_life_us: int

    @property
    def state(self) -> ShardState:
        if not self.lock.locked:
            return ShardState.FREE
        return ShardState.STALE if self.heartbeat_age_us > self.lock_life_us else ShardState.HELD

    @property
    def heartbeat_age_us(self) -> int:
        return self.now_us - self.lock.heartbeat_at_us

    @property
    def rows(self) -> int:
        return self.lock.incoming_rows + self.lock.processing_rows

    def cells(self) -> list[str]:
        """For a table."""
        lock = self.lock
        due = "-" if lock.earliest_us is None else relative(lock.earliest_us, self.now_us)
        if not lock.locked:
            return [f"{lock.shard_id}", self.state.value, "-", "-", "-", f"{self.rows:,}", due]
        return [
            f"{lock.shard_id}",
            self.state.value,
            lock.locked_by,
            to_the_second(lock.processing_start_at_us),
            f"{brief(max(self.heartbeat_age_us, 0))} ago",
            f"{self.rows:,}",
            due,
        ]

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        lock = self.lock
        return {
            "shard": lock.shard_id,
            "state": self.state.value,
            "by": lock.locked_by if lock.locked else None,
            "since": rfc3339(lock.processing_start_at_us) if lock.locked else None,
            "heartbeat_age_ms": self.heartbeat_age_us // 1000 if lock.locked else None,
            "incoming_rows": lock.incoming_rows,
            "processing_rows": lock.processing_rows,
            "earliest_time": None if lock.earliest_us is None else rfc3339(lock.earliest_us),
        }
