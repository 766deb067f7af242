"""Scans of whole tables: page by page, in one snapshot."""

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from clepsydra.store.port import Queue
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection.sessions import ColumnValues, Parameters, Snapshot

_PAGE_ROWS = 10_000

Key = TypeVar("Key", bound=tuple[Any, ...])


def scan_rows(snapshot: Snapshot, prefix: str, queue: Queue) -> AsyncIterator[ColumnValues]:
    """All rows of a queue, by the statement that the prefix and the queue name."""
    if queue is Queue.INCOMING:
        return _scan(snapshot, f"{prefix}_incoming", (0, 0, "", ""), incoming_key, _after_row)
    return _scan(snapshot, f"{prefix}_processing", (0, 0, "", ""), processing_key, _after_row)


def scan_actions(snapshot: Snapshot, name: str) -> AsyncIterator[ColumnValues]:
    """All actions, by a statement."""
    return _scan(snapshot, name, (0, ""), _action_key, parameters.after_action)


def incoming_key(row: ColumnValues) -> tuple[int, int, str, str]:
    return row["shard_id"], row["created_at"], row["action_id"], row["action_guid"]


def processing_key(row: ColumnValues) -> tuple[int, int, str, str]:
    return row["shard_id"], row["scheduled_at"], row["action_id"], row["action_guid"]


async def _scan(
    snapshot: Snapshot,
    name: str,
    start: Key,
    key_of: Callable[[ColumnValues], Key],
    parameters_at: Callable[[Key, int], Parameters],
) -> AsyncIterator[ColumnValues]:
    """All rows of a table, page by page."""
    after: Key | None = start
    while after is not None:
        rows = (await snapshot.read(name, parameters_at(after, _PAGE_ROWS))).rows()
        for row in rows:
            yield row
        after = key_of(rows[-1]) if len(rows) == _PAGE_ROWS else None


def _action_key(row: ColumnValues) -> tuple[int, str]:
    return row["meta_action_id_hash"], row["meta_action_id"]


def _after_row(after: tuple[int, int, str, str], limit: int) -> Parameters:
    shard_id, at_us, action_id, guid = after
    return {
        "$after_shard": parameters.number(shard_id),
        "$after_at": parameters.time(at_us),
        "$after_id": parameters.text(action_id),
        "$after_guid": parameters.text(guid),
        "$limit": parameters.number(limit),
    }
