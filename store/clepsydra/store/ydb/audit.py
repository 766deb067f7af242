"""The invariant, checked on one snapshot: every action has exactly one live row.

The three tables are read through in pages, in one snapshot that is held open, and compared here. A join on the server
would have to hold both tables in its memory at once; here an action costs about 150 bytes, in the process that asked
for the audit. The server keeps a snapshot for minutes: an audit that takes longer fails, and says so.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from clepsydra.store.port import Audit, Queue, Row, Violation
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.ranges import Position, Range, read_ranges_in
from clepsydra.store.ydb.sessions import Parameters, Sessions, Snapshot

_PAGE = 10_000


async def audit(sessions: Sessions, shards: int, limit: int, timeout_s: float) -> Audit:
    async with sessions.snapshot(timeout_s) as snapshot:
        rows: Counter[bytes] = Counter()
        stray: Counter[int] = Counter()
        for queue in Queue:
            async for row in _rows(snapshot, queue):
                if row["shard_id"] < shards:
                    rows[_life(row["action_id"], row["action_guid"])] += 1
                else:
                    stray[row["shard_id"]] += 1
        counts = _Counts(limit)
        async for action in _scan(snapshot, "audit_actions", (0, ""), _action_position, _after_action):
            action_id, guid = action["meta_action_id"], action["meta_action_guid"]
            counts.add(action_id, guid, rows.pop(_life(action_id, guid), 0))
        return Audit(
            actions=counts.actions,
            live_rows=counts.live_rows,
            stale_rows=rows.total() + stray.total(),
            without_row=counts.without_row,
            with_several_rows=counts.with_several_rows,
            violations=await _violations(snapshot, shards, counts.first_broken()),
            stray_shards=tuple(sorted(stray)),
        )


class _Counts:
    def __init__(self, limit: int) -> None:
        self.actions = 0
        self.live_rows = 0
        self.without_row = 0
        self.with_several_rows = 0
        self._limit = limit
        self._broken: list[tuple[str, str]] = []

    def add(self, action_id: str, guid: str, rows: int) -> None:
        self.actions += 1
        self.live_rows += rows
        self.without_row += rows == 0
        self.with_several_rows += rows > 1
        if rows != 1:
            self._broken.append((action_id, guid))
            if len(self._broken) > 2 * self._limit:
                self._broken = self.first_broken()

    def first_broken(self) -> list[tuple[str, str]]:
        return heapq.nsmallest(self._limit, self._broken)


async def _violations(snapshot: Snapshot, shards: int, broken: list[tuple[str, str]]) -> list[Violation]:
    """Name the rows too. Usually there is nothing to name, and the queues are not read again."""
    found: dict[tuple[str, str], list[Row]] = {life: [] for life in broken}
    if found:
        for queue in Queue:
            async for row in _rows(snapshot, queue):
                life = (row["action_id"], row["action_guid"])
                if life in found and row["shard_id"] < shards:
                    found[life].append(_row(queue, row))
    return [Violation(*life, found[life]) for life in broken]


def _life(action_id: str, guid: str) -> bytes:
    return hashlib.blake2b(f"{guid} {action_id}".encode(), digest_size=16).digest()


def _row(queue: Queue, row: dict[str, Any]) -> Row:
    key = _incoming_position(row) if queue is Queue.INCOMING else _processing_position(row)
    return Row(queue, *key, row["scheduled_at"], row.get("last_reschedule_at"))


def _rows(snapshot: Snapshot, queue: Queue) -> AsyncIterator[dict[str, Any]]:
    if queue is Queue.INCOMING:
        return _scan(snapshot, "audit_incoming", (0, 0, "", ""), _incoming_position, _after_row)
    return _scan(snapshot, "audit_processing", (0, 0, "", ""), _processing_position, _after_row)


async def _scan(
    snapshot: Snapshot,
    name: str,
    start: Position,
    position_of: Callable[[dict[str, Any]], Position],
    parameters_at: Callable[[Position, int], Parameters],
) -> AsyncIterator[dict[str, Any]]:
    after: Position | None = start
    while after is not None:
        page = Range(after, _PAGE, position_of, parameters_at)
        await read_ranges_in(snapshot, name, {}, [page])
        for row in page.rows:
            yield row
        after = position_of(page.rows[-1]) if len(page.rows) == _PAGE else None


def _action_position(row: dict[str, Any]) -> Position:
    return row["meta_action_id_hash"], row["meta_action_id"]


def _after_action(after: Position, limit: int) -> Parameters:
    return {
        "$after_hash": parameters.number(after[0]),
        "$after_id": parameters.text(after[1]),
        "$limit": parameters.number(limit),
    }


def _incoming_position(row: dict[str, Any]) -> tuple[int, int, str, str]:
    return row["shard_id"], row["created_at"], row["action_id"], row["action_guid"]


def _processing_position(row: dict[str, Any]) -> tuple[int, int, str, str]:
    return row["shard_id"], row["scheduled_at"], row["action_id"], row["action_guid"]


def _after_row(after: Position, limit: int) -> Parameters:
    shard_id, at_us, action_id, guid = after
    return {
        "$after_shard": parameters.number(shard_id),
        "$after_at": parameters.time(at_us),
        "$after_id": parameters.text(action_id),
        "$after_guid": parameters.text(guid),
        "$limit": parameters.number(limit),
    }
