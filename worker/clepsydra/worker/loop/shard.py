"""What a sync iteration knows of the shard that it holds."""

from bisect import bisect_right
from collections.abc import Sequence

from clepsydra.core.backoff import Backoff
from clepsydra.core.limits import READ_OVERLAP_US
from clepsydra.core.times import MINUTE_US
from clepsydra.store.port import Due, Queue, Row
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.loop.admission import Admission
from clepsydra.worker.loop.backlog import Backlog, Start
from clepsydra.worker.loop.heartbeat import HeldLock
from clepsydra.worker.loop.waiting_rows import position_of

_RESET_US = MINUTE_US


class ReadCursor:
    """The start of reads of one queue of the shard, so that they do not walk over deleted rows again and again.

    It never passes now minus an overlap that exceeds the longest retry of a call, because a row may become visible that
    late; nor a row that was seen and still exists; and it falls back to any earlier time that this worker writes. At
    each acquisition, and once a minute, reads start from the beginning.
    """

    __slots__ = ("_reset_us", "from_us")

    def __init__(self, now_us: int) -> None:
        self.from_us = 0
        self._reset_us = now_us

    def drained(self, until_us: int, now_us: int) -> None:
        """This worker has seen no row before this time."""
        if now_us - self._reset_us >= _RESET_US:
            self._reset_us = now_us
            self.from_us = 0
        else:
            self.from_us = max(self.from_us, min(until_us, now_us - READ_OVERLAP_US))

    def wrote(self, at_us: int) -> None:
        """This worker writes a row at this time."""
        self.from_us = min(self.from_us, at_us)


class Shard:
    def __init__(self, lock: HeldLock, writer: AdvanceWriter, backlog: Backlog, now_us: int) -> None:
        self.lock = lock
        self.writer = writer
        self.backlog = backlog
        self.admission = Admission()
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
        """Take rows that waited and can begin now, and then those that have come due since they were read."""
        waited = self.backlog.waiting.take(limit) if self.backlog.waiting else []
        limit -= len(waited)
        count = bisect_right(self.ahead, now_us, key=_due_at_us)
        tried = self.admission.limit(now_us, limit)
        if tried < min(limit, count):
            return waited + self._take_some(tried, count, limit, now_us)
        due, self.ahead = self.ahead[: min(limit, count)], self.ahead[min(limit, count) :]
        return waited + due if waited else due

    def _take_some(self, tried: int, count: int, limit: int, now_us: int) -> list[Due]:
        """Take only some of the `count` due rows: at most `tried` overdue ones, and those that have just come due."""
        overdue = bisect_right(self.ahead, self.admission.overdue_before_us(now_us), hi=count, key=_due_at_us)
        tried = min(tried, overdue)
        until = min(count, overdue + limit - tried)
        due = self.ahead[:tried] + self.ahead[overdue:until]
        self.ahead = self.ahead[tried:overdue] + self.ahead[until:]
        return due

    def has_due(self, now_us: int) -> bool:
        """Whether rows have come due since they were read. Rows that cannot begin are not among them."""
        return bool(self.ahead) and self.ahead[0].row.scheduled_at_us <= now_us

    def keep_ahead(self, rows: Sequence[Due]) -> None:
        """These rows were read ahead of their time."""
        self.ahead = sorted(rows, key=_due_at_us)

    def keep_read(self, start: Start, arrived: Sequence[Due], rows: Sequence[Due]) -> None:
        """These rows were read from there; rows that lie before it, and those that wait, were read earlier."""
        if not self.backlog.waiting:
            self.keep_ahead([*arrived, *rows])
            return
        fresh = self.backlog.waiting.unknown(rows)
        again = {position_of(due.row) for due in fresh}
        kept = [due for due in self.ahead if due.row.queue is Queue.PROCESSING]
        if start.needs is None:
            kept = [due for due in kept if position_of(due.row) <= start.position]
        kept = [due for due in kept if position_of(due.row) not in again]
        self.keep_ahead([*arrived, *kept, *fresh])

    def migrated(self, migrated: Sequence[Due]) -> None:
        """These rows lie in processing_queue now."""
        ahead = []
        for (_, shard_id, _, action_id, guid, at_us, _), action in migrated:
            self.processing.wrote(at_us)
            if at_us <= self.until_us:
                ahead.append(Due(Row(Queue.PROCESSING, shard_id, at_us, action_id, guid, at_us), action))
        self.keep_ahead([*self.ahead, *ahead])

    def plan_read(self, now_us: int, backoff: Backoff, fraction: float, *, found_incoming: bool) -> None:
        """Plan the next read: after empty ones later and later, with jitter, so that loops do not read in step."""
        self._empty_reads = 0 if found_incoming else self._empty_reads + 1
        self.read_at_us = now_us + backoff.pause_us(self._empty_reads + 1, fraction)

    def is_to_be_read(self, now_us: int) -> bool:
        return now_us >= self.read_at_us or self.backlog.waiting.read_again() is not None

    def read_now(self) -> None:
        self.read_at_us = 0

    def read_by(self, at_us: int) -> None:
        self.read_at_us = min(self.read_at_us, at_us)

    def wakes_at_us(self) -> int:
        """When there is something to do: a row comes due, or the next read."""
        return min(self.read_at_us, self.ahead[0].row.scheduled_at_us) if self.ahead else self.read_at_us

    def wrote(self, at_us: int) -> bool:
        """This worker moved a row of the shard to a time. True if that lies within the last read's horizon."""
        self.processing.wrote(at_us)
        self.backlog.wrote(at_us)
        if at_us <= self.until_us:
            self.read_by(at_us)
            return True
        return False


def _due_at_us(due: Due) -> int:
    return due.row.scheduled_at_us
