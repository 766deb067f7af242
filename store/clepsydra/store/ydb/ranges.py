"""Ranges read as a whole, though the server may send no more than so many rows at once.

Usually one request does it. If the server cut a result short, everything is read again in pages within one snapshot,
each page from where the one before it ended.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clepsydra.store.ydb.errors import Failed, Nature
from clepsydra.store.ydb.sessions import Parameters, Results, Sessions, Snapshot

Position = tuple[Any, ...]


class Range:
    """Rows in the order of a key, after a position, up to a limit."""

    def __init__(
        self,
        after: Position,
        limit: int,
        position_of: Callable[[dict[str, Any]], Position],
        parameters_at: Callable[[Position, int], Parameters],
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.is_complete = False
        self._start = self._after = after
        self._limit = limit
        self._position_of = position_of
        self._parameters_at = parameters_at

    def parameters(self) -> Parameters:
        """For what is still missing."""
        return self._parameters_at(self._after, 0 if self.is_complete else self._limit - len(self.rows))

    def take(self, rows: list[dict[str, Any]], *, is_truncated: bool) -> None:
        if self.is_complete:
            return
        self.rows += rows
        self.is_complete = not is_truncated or len(self.rows) >= self._limit
        if not self.is_complete:
            if not rows:
                raise Failed(Nature.HOPELESS, "the server sends no rows of a result that has some")
            self._after = self._position_of(rows[-1])

    def start_again(self) -> None:
        self.rows = []
        self.is_complete = False
        self._after = self._start


async def read_ranges(
    sessions: Sessions, name: str, fixed: Parameters, ranges: Sequence[Range], timeout_s: float
) -> Results:
    """Fill the ranges, which are the first result sets of the text, in their order. Returns the last results."""
    results = _take(ranges, await sessions.read(name, _parameters(fixed, ranges), timeout_s))
    if all(found.is_complete for found in ranges):
        return results
    for found in ranges:
        found.start_again()
    async with sessions.snapshot(timeout_s) as snapshot:
        return await read_ranges_in(snapshot, name, fixed, ranges)


async def read_ranges_in(snapshot: Snapshot, name: str, fixed: Parameters, ranges: Sequence[Range]) -> Results:
    while True:
        results = _take(ranges, await snapshot.read(name, _parameters(fixed, ranges)))
        if all(found.is_complete for found in ranges):
            return results


def _parameters(fixed: Parameters, ranges: Sequence[Range]) -> Mapping[str, Any]:
    parameters = dict(fixed)
    for found in ranges:
        parameters.update(found.parameters())
    return parameters


def _take(ranges: Sequence[Range], results: Results) -> Results:
    for index, found in enumerate(ranges):
        found.take(results.rows(index), is_truncated=results.is_truncated(index))
    return results
