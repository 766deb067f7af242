"""What a sync iteration knows of the shard that it holds."""

from bisect import bisect_right
from collections.abc import Sequence

from clepsydra.core.backoff import Backoff
from clepsydra.store.port import Due
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.loop.heartbeat import HeldLock
from clepsydra.worker.loop.read_cursor import ReadCursor


class Shard:
    def __init__(self, lock: HeldLock, writer: AdvanceWriter, now_us: int) -> None:
        self.lock = lock
        self.writer = writer
        self.since_us = now_us
        self.incoming = ReadCursor(now_us)
        self.processing = ReadCursor(now_us)
        # Rows that were read ahead of their time, earliest first.
        self.ahead: list[Due] = []
        # The horizon of the last read, and when to read again.
        self.until_us = 0
        self.read_at_us = 0
        self._empty_reads = 0
        # How long due rows have waited for room in the pool, in all, since the last read.
        self.waited_for_room_us = 0

    @property
    def shard_id(self) -> int:
        return self.lock.shard_id

    def take_due(self, now_us: int, limit: int) -> list[Due]:
        """Take the rows that have come due out of those that were read ahead."""
        count = min(limit, bisect_right(self.ahead, now_us, key=_due_at_us))
        due, self.ahead = self.ahead[:count], self.ahead[count:]
        return due

    def has_due(self, now_us: int) -> bool:
        return bool(self.ahead) and self.ahead[0].row.scheduled_at_us <= now_us

    def keep_ahead(self, rows: Sequence[Due]) -> None:
        """These rows were read ahead of their time."""
        self.ahead = sorted(rows, key=_due_at_us)

    def plan_read(self, now_us: int, backoff: Backoff, fraction: float, *, found_arrivals: bool) -> None:
        """Plan the next read: after empty ones later and later, with jitter, so that loops do not read in step."""
        self._empty_reads = 0 if found_arrivals else self._empty_reads + 1
        self.read_at_us = now_us + backoff.pause_us(self._empty_reads + 1, fraction)

    def read_now(self) -> None:
        self.read_at_us = 0

    def read_by(self, at_us: int) -> None:
        self.read_at_us = min(self.read_at_us, at_us)

    def wakes_at_us(self) -> int:
        """When there is something to do: a row comes due, or the next read."""
        if self.ahead:
            return min(self.read_at_us, self.ahead[0].row.scheduled_at_us)
        return self.read_at_us

    def wrote(self, at_us: int) -> bool:
        """This worker moved a row of the shard to a time. True if that lies within the last read's horizon."""
        self.processing.wrote(at_us)
        if at_us <= self.until_us:
            self.read_by(at_us)
            return True
        return False


def _due_at_us(due: Due) -> int:
    return due.row.scheduled_at_us
