"""What a sync iteration knows of the shard that it holds."""

from bisect import bisect_right
from collections.abc import Sequence

from clepsydra.store.port import Due
from clepsydra.worker.locks import HeldLock
from clepsydra.worker.positions import Position
from clepsydra.worker.writing import Writing

_LONGEST_BACKOFF = 16


class Shard:
    def __init__(self, lock: HeldLock, writing: Writing, now_us: int) -> None:
        self.lock = lock
        self.writing = writing
        self.since_us = now_us
        self.incoming = Position(now_us)
        self.processing = Position(now_us)
        # Rows that were read ahead of their time, earliest first.
        self.ahead: list[Due] = []
        # How far into the future the last look went, and when to look again.
        self.until_us = 0
        self.look_at_us = 0
        self._empty_looks = 0
        # For how long rows that were due have found no room, all in all, since the last look.
        self.waited_for_room_us = 0

    @property
    def shard_id(self) -> int:
        return self.lock.shard_id

    def take_due(self, now_us: int, limit: int) -> list[Due]:
        """Take the rows whose time has come out of those that were read ahead."""
        count = min(limit, bisect_right(self.ahead, now_us, key=_time_of))
        due, self.ahead = self.ahead[:count], self.ahead[count:]
        return due

    def has_due(self, now_us: int) -> bool:
        return bool(self.ahead) and self.ahead[0].row.scheduled_at_us <= now_us

    def expect(self, rows: Sequence[Due]) -> None:
        """What the last look found to lie ahead."""
        self.ahead = sorted(rows, key=_time_of)

    def found(self, *, anything: bool, now_us: int, first_us: int, longest_us: int, fraction: float) -> None:
        """Plan the next look: after empty ones later and later, with jitter, so that loops do not look in step."""
        self._empty_looks = 0 if anything else min(self._empty_looks + 1, _LONGEST_BACKOFF)
        pause_us = min(longest_us, first_us * 2**self._empty_looks)
        self.look_at_us = now_us + round(pause_us * (1 - 0.25 * fraction))

    def look_soon(self) -> None:
        self.look_at_us = 0

    def look_by(self, at_us: int) -> None:
        self.look_at_us = min(self.look_at_us, at_us)

    def wakes_at_us(self) -> int:
        """When there is something to do: a row comes due, or it is time to look again."""
        if self.ahead:
            return min(self.look_at_us, self.ahead[0].row.scheduled_at_us)
        return self.look_at_us

    def wrote(self, at_us: int) -> bool:
        """This worker put a row of the shard to a time. True if that lies where the last look has already been."""
        self.processing.wrote(at_us)
        if at_us <= self.until_us:
            self.look_at_us = min(self.look_at_us, at_us)
            return True
        return False


def _time_of(due: Due) -> int:
    return due.row.scheduled_at_us
