"""Where the live rows of actions are: each call sees one snapshot."""

from collections.abc import Sequence
from typing import Any

import apsw

from clepsydra.core.clock import Clock
from clepsydra.store.port import Inspected, Inspection, LiveRow, LockRow, Queue, Row, Version
from clepsydra.store.sqlite.connection.connect import fetch
from clepsydra.store.sqlite.connection.multi_row_insert import load
from clepsydra.store.sqlite.connection.thread import OperationRunner
from clepsydra.store.sqlite.read import get_actions

# The actions and the locks of a snapshot; the clock is not the database's.
_Found = tuple[list[Inspected], list[LockRow]]


class Inspections:
    _clock: Clock
    _reader: OperationRunner

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        found = await self._reader.run(lambda connection: _running(connection, action_ids, after_us, until_us))
        return Inspection(*found, self._clock.now_us())

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        found = await self._reader.run(lambda connection: _inspect(connection, action_id, until_us))
        return Inspection(*found, self._clock.now_us())

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        return await self._reader.run(lambda connection: _versions(connection, action_ids))


def _running(connection: apsw.Connection, action_ids: Sequence[str], after_us: int, until_us: int) -> _Found:
    actions = get_actions(connection, action_ids)
    _load_ids(connection, action_ids)
    rows = fetch(connection, "rows_between", {"after": after_us, "until": until_us})
    live = {(found.row.action_id, found.row.guid): found for found in map(_live_row, rows)}
    inspected = [
        Inspected(action, None if action is None else live.get((action.action_id, action.guid))) for action in actions
    ]
    return inspected, _lock_rows(connection)


def _inspect(connection: apsw.Connection, action_id: str, until_us: int) -> _Found:
    [action] = get_actions(connection, [action_id])
    rows: list[LiveRow] = []
    if action is not None:
        name = {"action_id": action_id, "guid": action.guid}
        bounds = {"from": action.scheduled_at_us, "until": max(action.scheduled_at_us, until_us)}
        rows += [_live_row(columns) for columns in fetch(connection, "processing_row", {**name, **bounds})]
        rows += [
            LiveRow(Row(Queue.INCOMING, shard_id, created_at, action_id, action.guid, scheduled_at), created_at)
            for shard_id, created_at, scheduled_at in fetch(connection, "incoming_row", name)
        ]
    return [Inspected(action, rows[0] if rows else None)], _lock_rows(connection)


def _versions(connection: apsw.Connection, action_ids: Sequence[str]) -> list[Version | None]:
    _load_ids(connection, action_ids)
    found = {action_id: Version(guid, at_us) for action_id, guid, at_us in fetch(connection, "versions")}
    return [found.get(action_id) for action_id in action_ids]


def _live_row(columns: tuple[Any, ...]) -> LiveRow:
    shard_id, at_us, action_id, guid, rescheduled_at_us, *provenance = columns
    return LiveRow(Row(Queue.PROCESSING, shard_id, at_us, action_id, guid, at_us, rescheduled_at_us), *provenance)


def _lock_rows(connection: apsw.Connection) -> list[LockRow]:
    return [LockRow(shard_id, bool(locked), *columns) for shard_id, locked, *columns in fetch(connection, "lock_rows")]


def _load_ids(connection: apsw.Connection, action_ids: Sequence[str]) -> None:
    load(connection, "action_ids", [(action_id,) for action_id in action_ids])
