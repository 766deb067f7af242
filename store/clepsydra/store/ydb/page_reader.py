"""Reads whole ranges of rows, though the server limits the rows of one result.

Usually one request is enough. If the server truncated a result, everything is read again in pages, within one
snapshot: each page starts after the last row of the page before it.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from clepsydra.store.errors import Unusable
from clepsydra.store.port import Queue
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection.sessions import Parameters, Results, Sessions, Snapshot

# The page of a scan of a whole table.
_SCAN_PAGE_ROWS = 10_000

Key = tuple[Any, ...]
ColumnValues = dict[str, Any]


class RangeReader:
    """Collects the rows of one range, page by page: in the order of their key, after a given key, up to a limit."""

    def __init__(
        self,
        after: Key,
        limit: int,
        key_of: Callable[[ColumnValues], Key],
        parameters_at: Callable[[Key, int], Parameters],
    ) -> None:
        self.rows: list[ColumnValues] = []
        self.is_complete = False
        self._start = after
        self._after = after
        self._limit = limit
        self._key_of = key_of
        self._parameters_at = parameters_at

    def parameters(self) -> Parameters:
        """The parameters of the next page."""
        return self._parameters_at(self._after, 0 if self.is_complete else self._limit - len(self.rows))

    def add_page(self, rows: list[ColumnValues], *, is_truncated: bool) -> None:
        if self.is_complete:
            return
        self.rows += rows
        self.is_complete = not is_truncated or len(self.rows) >= self._limit
        if not self.is_complete:
            if not rows:
                raise Unusable("the server truncated a result to no rows")
            self._after = self._key_of(rows[-1])

    def start_again(self) -> None:
        self.rows = []
        self.is_complete = False
        self._after = self._start


async def read_ranges(sessions: Sessions, name: str, fixed: Parameters, ranges: Sequence[RangeReader]) -> Results:
    """Read ranges completely: they are the first SELECTs of the text, in order. Returns the last request's results."""
    _start_again(ranges)
    results = _add_pages(ranges, await sessions.read(name, _parameters(fixed, ranges)))
    if all(each.is_complete for each in ranges):
        return results
    _start_again(ranges)
    async with sessions.snapshot() as snapshot:
        return await read_ranges_in(snapshot, name, fixed, ranges)


async def read_ranges_in(snapshot: Snapshot, name: str, fixed: Parameters, ranges: Sequence[RangeReader]) -> Results:
    while True:
        results = _add_pages(ranges, await snapshot.read(name, _parameters(fixed, ranges)))
        if all(each.is_complete for each in ranges):
            return results


def _start_again(ranges: Sequence[RangeReader]) -> None:
    for each in ranges:
        each.start_again()


def _parameters(fixed: Parameters, ranges: Sequence[RangeReader]) -> Parameters:
    combined = dict(fixed)
    for each in ranges:
        combined.update(each.parameters())
    return combined


def _add_pages(ranges: Sequence[RangeReader], results: Results) -> Results:
    for index, each in enumerate(ranges):
        each.add_page(results.rows(index), is_truncated=results.is_truncated(index))
    return results


# The key of `scheduled_actions`, by which both listing and the audit read it.


def action_key(row: ColumnValues) -> Key:
    return row["meta_action_id_hash"], row["meta_action_id"]


def after_action(after: Key, limit: int) -> Parameters:
    hash_of_id, action_id = after
    return {
        "$after_hash": parameters.number(hash_of_id),
        "$after_id": parameters.text(action_id),
        "$limit": parameters.number(limit),
    }


def scan_rows(snapshot: Snapshot, prefix: str, queue: Queue) -> AsyncIterator[ColumnValues]:
    """All rows of a queue, by the statement that the prefix and the queue name."""
    if queue is Queue.INCOMING:
        return scan(snapshot, f"{prefix}_incoming", (0, 0, "", ""), incoming_key, _after_row)
    return scan(snapshot, f"{prefix}_processing", (0, 0, "", ""), processing_key, _after_row)


async def scan(
    snapshot: Snapshot,
    name: str,
    start: Key,
    key_of: Callable[[ColumnValues], Key],
    parameters_at: Callable[[Key, int], Parameters],
) -> AsyncIterator[ColumnValues]:
    """All rows of a table, page by page."""
    after: Key | None = start
    while after is not None:
        page = RangeReader(after, _SCAN_PAGE_ROWS, key_of, parameters_at)
        await read_ranges_in(snapshot, name, {}, [page])
        for row in page.rows:
            yield row
        after = key_of(page.rows[-1]) if len(page.rows) == _SCAN_PAGE_ROWS else None


def incoming_key(row: ColumnValues) -> tuple[int, int, str, str]:
    return row["shard_id"], row["created_at"], row["action_id"], row["action_guid"]


def processing_key(row: ColumnValues) -> tuple[int, int, str, str]:
    return row["shard_id"], row["scheduled_at"], row["action_id"], row["action_guid"]


def _after_row(after: Key, limit: int) -> Parameters:
    shard_id, at_us, action_id, guid = after
    return {
        "$after_shard": parameters.number(shard_id),
        "$after_at": parameters.time(at_us),
        "$after_id": parameters.text(action_id),
        "$after_guid": parameters.text(guid),
        "$limit": parameters.number(limit),
    }
