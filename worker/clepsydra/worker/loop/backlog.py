"""How far a shard was read, while some of its rows are due and cannot begin.

Usually nothing waits: a read starts where the shard's first row may lie. Rows that wait stay where they are in the
store, so a read that starts there would return them again and nothing else. So while rows wait, reads go on behind the
last row that was read, page by page, until what comes due is reached; that is one *pass*. The end of a pass is read
again and again, for what comes due next.

Rows that appear at a time which a pass has left behind are found by the next pass from the beginning. Passes cost a
small part of a worker's time at most, however long the backlog is.
"""

from collections.abc import Sequence
from typing import NamedTuple

from clepsydra.core.times import MINUTE_US, SECOND_US
from clepsydra.store.port import Due
from clepsydra.worker.capacity import Needs
from clepsydra.worker.loop.waiting_rows import Position, WaitingRows, position_of

# Between two passes from the beginning: ten times as long as a pass takes, within these bounds.
_PASS_MIN_US = 5 * SECOND_US
_PASS_MAX_US = MINUTE_US
_PASS_SHARE = 10
# Other workers may write rows that come due at once: the last moments before now are read again.
_RECENT_US = SECOND_US


class Start(NamedTuple):
    """Where a read starts: behind this position."""

    position: Position
    # The read is to find rows with these needs, which were passed by.
    needs: Needs | None = None
    is_beginning: bool = False


class Backlog:
    """The backlog of one shard. It outlives a hold of the lock, so that short holds get to the end of a long one."""

    def __init__(self, page: int) -> None:
        self.waiting = WaitingRows(page)
        # Everything before this position was read; None: nothing waits.
        self._read_to: Position | None = None
        self._pass_started_us = 0
        # None: a pass is under way.
        self._next_pass_us: int | None = None

    def start(self, from_us: int, now_us: int) -> Start:
        """Where the next read starts, if the shard has no row before `from_us`."""
        if self.waiting and self._read_to is not None:
            again = self.waiting.read_again()
            if again is not None:
                return Start(again[1], again[0])
            if self._next_pass_us is None or now_us < self._next_pass_us:
                return Start(self._read_to)
        self._pass_started_us, self._next_pass_us = now_us, None
        return Start((from_us, "", ""), is_beginning=True)

    def has_read(self, start: Start, rows: Sequence[Due], *, is_full: bool, now_us: int) -> None:
        """A page was read from there. If it is not full, nothing lies behind it that comes due soon."""
        last = position_of(rows[-1].row) if is_full else None
        if start.needs is not None:
            self.waiting.was_read(start.needs, last)
        elif last is not None:
            self._read_to = last
        else:
            self._read_to = (now_us - _RECENT_US, "", "")
            if self._next_pass_us is None:
                pause_us = _PASS_SHARE * (now_us - self._pass_started_us)
                self._next_pass_us = now_us + min(_PASS_MAX_US, max(_PASS_MIN_US, pause_us))

    def wrote(self, at_us: int) -> None:
        """This worker writes a row at this time."""
        if self._read_to is not None and at_us <= self._read_to[0]:
            self._read_to = (at_us, "", "")

    def released(self, now_us: int) -> None:
        """Another worker may hold the shard next, and write rows from now on."""
        self.waiting.forget_rows()
        self.wrote(now_us - _RECENT_US)
