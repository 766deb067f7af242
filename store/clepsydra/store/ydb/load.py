"""What the rows of the queues stand for, shard by shard.

The queues are read in pages, in one snapshot, and each page looks up the actions of its rows by their keys: a join of
whole tables would need both in the server's memory. So a count takes time, and no memory.
"""

from collections import defaultdict
from dataclasses import dataclass

from clepsydra.core.state_bytes import is_live
from clepsydra.store.port import Load, Queue
from clepsydra.store.ydb.connection.sessions import ColumnValues, Snapshot
from clepsydra.store.ydb.row_scan import scan_rows


@dataclass
class _Counts:
    waiting: int = 0
    due: int = 0
    running: int = 0
    kept: int = 0
    next_us: int | None = None

    def add(self, row: ColumnValues, now_us: int) -> None:
        if not is_live(row["state_bytes"]):
            self.kept += 1
        elif row["is_planned"]:
            at_us = row["scheduled_at"]
            self.waiting += 1
            self.due += at_us <= now_us
            self.next_us = at_us if self.next_us is None else min(self.next_us, at_us)
        else:
            self.running += 1

    def load(self) -> Load:
        return Load(self.waiting, self.running, self.kept, self.next_us)


class Loads:
    """The loads of all shards at one moment."""

    def __init__(self, counts: dict[int, _Counts], total: _Counts) -> None:
        self._counts = counts
        self.total = total.load()
        # How many waiting rows of all shards are due.
        self.due_waiting = total.due

    def of(self, shard_id: int) -> Load:
        counts = self._counts.get(shard_id)
        return Load() if counts is None else counts.load()


async def read_loads(snapshot: Snapshot, shards: int, now_us: int) -> Loads:
    counts: dict[int, _Counts] = defaultdict(_Counts)
    total = _Counts()
    for queue in Queue:
        async for row in scan_rows(snapshot, "load", queue):
            if row["is_current"] and row["shard_id"] < shards:
                counts[row["shard_id"]].add(row, now_us)
                total.add(row, now_us)
    return Loads(counts, total)
