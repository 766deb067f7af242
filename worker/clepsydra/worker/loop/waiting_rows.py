"""Due rows of a shard that cannot begin yet, because what they need is taken.

They wait unbegun: no attempt is spent, and reading goes on behind them. Rows with the same needs wait in one line, in
the order of their times. Memory is bounded: rows that find the lines full are passed by, and where the first of them
lies is remembered. When a line is empty and its needs are free again, its rows are read from there.
"""

from bisect import insort
from collections.abc import Iterable, Sequence

from clepsydra.store.port import Due, Row
from clepsydra.worker.capacity import Needs

_PAGES = 4

# Where a row of processing_queue lies within its shard.
Position = tuple[int, str, str]


def position_of(row: Row) -> Position:
    return row.at_us, row.action_id, row.guid


class WaitingRows:
    def __init__(self, page: int) -> None:
        self._line_limit = page
        self._limit = _PAGES * page
        self._lines: dict[Needs, list[Due]] = {}
        # The positions of all rows in the lines.
        self._kept: set[Position] = set()
        # Behind this position lie rows that were passed by; they are not in the line.
        self._passed: dict[Needs, Position] = {}

    def __bool__(self) -> bool:
        return bool(self._lines or self._passed)

    def add(self, needs: Needs, due: Due) -> None:
        """This row is due and cannot begin."""
        position = position_of(due.row)
        passed = self._passed.get(needs)
        if passed is not None and position > passed:
            return
        line = self._lines.get(needs, [])
        if len(line) >= self._line_limit or len(self._kept) >= self._limit:
            # The guid is left out, so that the row itself lies behind the position.
            self._passed[needs] = (due.row.at_us, due.row.action_id, "")
            return
        self._kept.add(position)
        self._lines[needs] = line
        if not line or position_of(line[-1].row) < position:
            line.append(due)
        else:
            insort(line, due, key=_position)

    def take(self, limit: int) -> list[Due]:
        """Take the rows that can begin now out of their lines, the earliest first."""
        taken: list[Due] = []
        counted: list[tuple[Needs, int]] = []
        for needs in sorted(self._lines, key=self._first):
            count = min(limit - len(taken), needs.room(), len(self._lines[needs]))
            if count <= 0:
                needs.want()
                continue
            # Lines may need the same resources: what one takes is not there for the next.
            needs.take(count)
            counted.append((needs, count))
            taken += self._take_out(needs, count)
        for needs, count in counted:
            needs.take_back(count)
        return taken

    def can_begin(self) -> bool:
        """Whether a row could begin now. If not, what they wait for is wanted."""
        for needs in (*self._lines, *self._passed):
            if needs.room() > 0:
                return True
            needs.want()
        return False

    def read_again(self) -> "tuple[Needs, Position] | None":
        """An empty line whose rows could begin, and the position behind which they lie."""
        for needs, position in self._passed.items():
            if needs not in self._lines and needs.room() > 0:
                return needs, position
        return None

    def was_read(self, needs: Needs, until: Position | None) -> None:
        """Rows with these needs were read up to a position, or all of them: none of those is passed by any more."""
        if until is None:
            self._passed.pop(needs, None)
        else:
            self._passed[needs] = until

    def without_kept(self, rows: Iterable[Due]) -> Sequence[Due]:
        return [due for due in rows if position_of(due.row) not in self._kept]

    def forget_rows(self) -> None:
        """Remember only where they lie."""
        for needs, line in self._lines.items():
            self._passed[needs] = (line[0].row.at_us, line[0].row.action_id, "")
        self._lines.clear()
        self._kept.clear()

    def _take_out(self, needs: Needs, count: int) -> list[Due]:
        line = self._lines[needs]
        taken = line[:count]
        del line[:count]
        if not line:
            del self._lines[needs]
        self._kept.difference_update(position_of(due.row) for due in taken)
        return taken

    def _first(self, needs: Needs) -> Position:
        return position_of(self._lines[needs][0].row)


def _position(due: Due) -> Position:
    return position_of(due.row)
