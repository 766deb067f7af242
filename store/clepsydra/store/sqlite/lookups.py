"""The reads, as operations on a connection: each sees one snapshot."""

import json
from collections.abc import Sequence
from typing import Any

import apsw

from clepsydra.store.port import (
    Action,
    Audit,
    Inspected,
    LiveRow,
    LockInfo,
    LockRow,
    Page,
    Queue,
    Row,
    StalePage,
    Stats,
    Version,
    Violation,
)
from clepsydra.store.sqlite.batches import load
from clepsydra.store.sqlite.connection import fetch, run, value
from clepsydra.store.sqlite.packing import read_page


def get(connection: apsw.Connection, action_ids: Sequence[str]) -> list[Action | None]:
    if len(action_ids) == 1:
        rows = fetch(connection, "get_one", (action_ids[0],))
    else:
        _load_ids(connection, action_ids)
        rows = fetch(connection, "get")
    found: list[Action | None] = [None] * len(action_ids)
    for n, *columns in rows:
        found[n] = Action(*columns)
    return found


def versions(connection: apsw.Connection, action_ids: Sequence[str]) -> list[Version | None]:
    _load_ids(connection, action_ids)
    found: list[Version | None] = [None] * len(action_ids)
    for n, guid, scheduled_at_us in fetch(connection, "versions"):
        found[n] = Version(guid, scheduled_at_us)
    return found


def running(
    connection: apsw.Connection, action_ids: Sequence[str], after_us: int, until_us: int
) -> tuple[list[Inspected], list[LockRow]]:
    actions = get(connection, action_ids)
    _load_ids(connection, action_ids)
    rows = fetch(connection, "rows_between", {"after": after_us, "until": until_us})
    live = {(found.row.action_id, found.row.guid): found for found in map(_live_row, rows)}
    inspected = [
        Inspected(action, None if action is None else live.get((action.action_id, action.guid))) for action in actions
    ]
    return inspected, _lock_rows(connection)


def inspect(connection: apsw.Connection, action_id: str, until_us: int) -> tuple[list[Inspected], list[LockRow]]:
    [action] = get(connection, [action_id])
    live = None
    if action is not None:
        name = {"action_id": action_id, "guid": action.guid}
        bounds = {"from": action.scheduled_at_us, "until": max(action.scheduled_at_us, until_us)}
        rows = [_live_row(columns) for columns in fetch(connection, "processing_row", {**name, **bounds})]
        rows += [
            LiveRow(Row(Queue.INCOMING, shard_id, created_at, action_id, action.guid, scheduled_at), created_at)
            for shard_id, created_at, scheduled_at in fetch(connection, "incoming_row", name)
        ]
        live = rows[0] if rows else None
    return [Inspected(action, live)], _lock_rows(connection)


def _live_row(columns: tuple[Any, ...]) -> LiveRow:
    shard_id, at_us, action_id, guid, rescheduled_at_us, *provenance = columns
    return LiveRow(Row(Queue.PROCESSING, shard_id, at_us, action_id, guid, at_us, rescheduled_at_us), *provenance)


def _lock_rows(connection: apsw.Connection) -> list[LockRow]:
    return [LockRow(shard_id, bool(locked), *columns) for shard_id, locked, *columns in fetch(connection, "lock_rows")]


def _load_ids(connection: apsw.Connection, action_ids: Sequence[str]) -> None:
    run(connection, "clear_action_ids")
    load(connection, "action_ids", list(enumerate(action_ids)))


def list_actions(connection: apsw.Connection, after_id: str | None, limit: int) -> list[Action]:
    rows = fetch(connection, "list_actions", {"after": after_id or "", "limit": limit})
    return [Action(*columns) for columns in rows]


def due(
    connection: apsw.Connection,
    shard_id: int,
    incoming_from_us: int,
    incoming_limit: int,
    after: tuple[int, str, str],
    until_us: int,
    limit: int,
) -> Page:
    arrived = {"from_at": incoming_from_us, "limit": incoming_limit}
    from_us, action_id, guid = after
    coming = {"from_at": from_us, "from_id": action_id, "from_guid": guid, "until": until_us, "limit": limit}
    return Page(
        read_page(connection, Queue.INCOMING, shard_id, "incoming", arrived),
        read_page(connection, Queue.PROCESSING, shard_id, "due", coming),
    )


def soon(connection: apsw.Connection, shard_id: int, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
    bounds = {"shard_id": shard_id, "from_at": incoming_from_us, "until": until_us, "limit": limit}
    return [Row(Queue.INCOMING, shard_id, *columns) for columns in fetch(connection, "soon", bounds)]


def stale(
    connection: apsw.Connection, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int
) -> StalePage:
    # Behind the row, and not before the time: whichever comes later.
    start = (from_us - 1, "\U0010ffff", "")
    at_us, action_id, guid = start if after is None else max(after, start)
    # One row more than the page has tells whether there is another page.
    position = {"shard_id": shard_id, "at": at_us, "action_id": action_id, "guid": guid, "limit": limit + 1}
    rows = fetch(connection, "stale_page", position)
    page = rows[:limit]
    found = [
        Row(Queue.PROCESSING, shard_id, scheduled_at, action_id, guid, scheduled_at, rescheduled_at)
        for scheduled_at, action_id, guid, rescheduled_at, is_stale in page
        if is_stale
    ]
    return StalePage(found, page[-1][:3] if len(rows) > limit else None, len(page))


def free_lock_exists(connection: apsw.Connection, lock_guid: str, stale_before_us: int) -> bool:
    return bool(value(connection, "free_lock_exists", {"guid": lock_guid, "stale_before": stale_before_us}))


def locks(connection: apsw.Connection) -> list[LockInfo]:
    return [_lock_info(*columns) for columns in fetch(connection, "locks")]


def _lock_info(
    shard_id: int,
    locked: int,
    guid: str,
    locked_by: str,
    start: int,
    heartbeat: int,
    incoming: int,
    processing: int,
    *earliest: int | None,
) -> LockInfo:
    return LockInfo(
        shard_id, bool(locked), guid, locked_by, start, heartbeat, incoming, processing, _earliest(*earliest)
    )


def stats(connection: apsw.Connection, now_us: int) -> Stats:
    columns: tuple[Any, ...] = value(connection, "stats", {"now": now_us})
    actions, incoming, processing, due_rows, incoming_earliest, processing_earliest, shards, locked = columns
    return Stats(
        actions, incoming, processing, due_rows, _earliest(incoming_earliest, processing_earliest), shards, locked
    )


def audit(connection: apsw.Connection, limit: int) -> Audit:
    actions, live, rows, with_row, with_several = value(connection, "audit_counts")
    violations = []
    if with_row != actions or with_several:
        violations = [
            Violation(action_id, guid, [_row_of(action_id, guid, *row) for row in json.loads(found)])
            for action_id, guid, found in fetch(connection, "audit_violations", {"limit": limit})
        ]
    stray_shards = tuple(shard_id for (shard_id,) in fetch(connection, "audit_stray_shards"))
    return Audit(actions, live, rows - live, actions - with_row, with_several, violations, stray_shards)


def _row_of(action_id: str, guid: str, is_incoming: int, shard_id: int, at_us: int, *times_us: Any) -> Row:
    queue = Queue.INCOMING if is_incoming else Queue.PROCESSING
    return Row(queue, shard_id, at_us, action_id, guid, *times_us)


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
