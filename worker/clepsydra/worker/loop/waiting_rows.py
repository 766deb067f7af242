"""Due rows of a shard that cannot begin yet, because what they need is taken.

They wait unbegun: no attempt is spent, and reading goes on behind them. Rows with the same needs wait in one line, in
the order of their times. Memory is bounded: rows that find the lines full are passed by, and where the first of them
lies is remembered. When a line is empty and its needs are free again, its rows are read from there.

There may be thousands of lines, one for each host. A line is looked at when the resource was given back that it lacked,
and otherwise costs nothing.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import count

from clepsydra.store.port import Due, Row
from clepsydra.worker.capacity import Needs, Resource

_PAGES = 4

# Where a row of processing_queue lies within its shard.
Position = tuple[int, str, str]


def position_of(row: Row) -> Position:
    return row.at_us, row.action_id, row.guid


class WaitingRows:
    def __init__(self, page: int) -> None:
        self._line_limit = page
        self._limit = _PAGES * page
        self._rows: dict[Position, Due] = {}
        self._lines: dict[Needs, list[Position]] = {}
        # Behind this position lie rows that were passed by; they are not in the line.
        self._passed: dict[Needs, Position] = {}
        # Needs to look at, needs that lack a resource, the first row first, and needs whose rows are to be read.
        self._to_look_at: deque[tuple[int, Needs]] = deque()
        self._lacking: dict[Resource, list[tuple[Position, int, Needs]]] = {}
        self._to_read: list[Needs] = []
        self._freed: set[Resource] = set()
        # Only the last entry of each needs counts.
        self._entries = count()
        self._last_entry: dict[Needs, int] = {}

    def __bool__(self) -> bool:
        return bool(self._lines or self._passed)

    def add(self, needs: Needs, due: Due) -> None:
        """This row is due and cannot begin."""
        position = position_of(due.row)
        passed = self._passed.get(needs)
        if passed is not None and position > passed:
            return
        line = self._lines.get(needs, [])
        if len(line) >= self._line_limit or len(self._rows) >= self._limit:
            # The guid is left out, so that the row itself lies behind the position.
            self._passed[needs] = (due.row.at_us, due.row.action_id, "")
        else:
            self._lines[needs] = line
            self._rows[position] = due
            if not line or line[-1] < position:
                line.append(position)
            else:
                insort(line, position)
        if needs not in self._last_entry:
            self.look_at(needs)

    def take(self, limit: int) -> list[Due]:
        """Take rows that can begin now out of their lines."""
        taken: list[Due] = []
        counted: list[tuple[Needs, int]] = []
        again: list[Needs] = []
        lacking: list[Needs] = []
        while len(taken) < limit:
            needs = self._next()
            if needs is None:
                break
            line, room = self._lines.get(needs, ()), needs.room()
            if not room:
                lacking.append(needs)
            elif line:
                taking = min(limit - len(taken), room, len(line))
                # Others may need the same resources: what one takes is not there for the next.
                needs.take(taking)
                counted.append((needs, taking))
                taken += self._take_out(needs, taking)
                again.append(needs)
            elif needs in self._passed:
                self._to_read.append(needs)
            else:
                del self._last_entry[needs]
        for needs in lacking:
            self._set_lacking(needs)
        for needs, taking in counted:
            needs.take_back(taking)
        # Not all of those rows may begin: what they would have taken is looked at once more.
        for needs in again:
            self.look_at(needs)
        return taken

    def can_begin(self) -> bool:
        """Whether a row may be able to begin now."""
        return bool(self._to_look_at or self._freed or self._to_read)

    def read_again(self) -> "tuple[Needs, Position] | None":
        """Needs that are free and whose line is empty, and the position behind which their rows lie."""
        while self._to_read:
            needs = self._to_read[-1]
            position = self._passed.get(needs)
            if position is not None and needs.room() > 0:
                return needs, position
            self._to_read.pop()
            self.look_at(needs)
        return None

    def was_read(self, needs: Needs, until: Position | None) -> None:
        """Rows with these needs were read up to a position, or all of them: none of those is passed by any more."""
        if until is None:
            self._passed.pop(needs, None)
        else:
            self._passed[needs] = until
        if needs in self._to_read:
            self._to_read.remove(needs)
            self.look_at(needs)

    def unknown(self, rows: Iterable[Due]) -> list[Due]:
        """Rows that do not wait here yet. Those that do are replaced, because their actions may have changed."""
        unknown = []
        for due in rows:
            position = position_of(due.row)
            if position in self._rows:
                self._rows[position] = due
            else:
                unknown.append(due)
        return unknown

    def forget_rows(self) -> None:
        """Remember only where they lie."""
        for needs, line in self._lines.items():
            at_us, action_id, _ = line[0]
            self._passed[needs] = (at_us, action_id, "")
        self._lines.clear()
        self._rows.clear()

    def freed(self, resource: Resource) -> None:
        """Something was given back that rows lack."""
        self._freed.add(resource)

    def look_at(self, needs: Needs) -> None:
        """They may be free now."""
        entry = self._last_entry[needs] = next(self._entries)
        self._to_look_at.append((entry, needs))

    def _next(self) -> Needs | None:
        """Needs to look at: first those that lacked a resource which was given back."""
        while self._freed:
            resource = next(iter(self._freed))
            lacking = self._lacking.get(resource)
            if lacking and resource.free > 0:
                _, entry, needs = heappop(lacking)
                if self._last_entry.get(needs) == entry:
                    return needs
                continue
            self._freed.discard(resource)
            if lacking:
                resource.listeners.add(self)
        while self._to_look_at:
            entry, needs = self._to_look_at.popleft()
            if self._last_entry.get(needs) == entry:
                return needs
        return None

    def _set_lacking(self, needs: Needs) -> None:
        resource, line = needs.lacking(), self._lines.get(needs)
        first = line[0] if line else self._passed.get(needs)
        if first is None:
            del self._last_entry[needs]
            return
        entry = self._last_entry[needs] = next(self._entries)
        heappush(self._lacking.setdefault(resource, []), (first, entry, needs))
        resource.listeners.add(self)
        needs.listeners.add(self)

    def _take_out(self, needs: Needs, taking: int) -> list[Due]:
        line = self._lines[needs]
        taken = [self._rows.pop(position) for position in line[:taking]]
        del line[:taking]
        if not line:
            del self._lines[needs]
        return taken
