"""Where the live rows of actions are. Each call reads the shards one after the other, within one snapshot."""

from collections.abc import Sequence
from functools import partial

from clepsydra.store.port import Action, Inspected, Inspection, LiveRow, LockRow, Queue, Row, Version
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import ROWS_MAX
from clepsydra.store.ydb.connection.sessions import Parameters, Sessions, Snapshot
from clepsydra.store.ydb.lock import ALL_LOCKS, from_shard
from clepsydra.store.ydb.page_reader import ColumnValues, RangeReader, read_ranges_in
from clepsydra.store.ydb.read import action_of, after_incoming, after_processing, incoming_key, processing_key
from clepsydra.store.ydb.retry import Retry

# More attempts of one shard than this are never in flight.
_ROWS_OF_SHARD = 1_000_000
# Greater than every id: a range that starts after a time starts after its last row.
_LAST_ID = "\U0010ffff"


class Inspections:
    _sessions: Sessions
    _retry: Retry
    _shards: int

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        return await self._retry.call(lambda: self._running(action_ids, after_us, until_us))

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        return await self._retry.call(lambda: self._inspect(action_id, until_us))

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        found: dict[str, Version] = {}
        for start in range(0, len(action_ids), ROWS_MAX):
            sent = {"$keys": parameters.action_keys(action_ids[start : start + ROWS_MAX])}
            results = await self._retry.call(partial(self._sessions.read, "versions", sent))
            found |= {
                row["meta_action_id"]: Version(row["meta_action_guid"], row["status_scheduled_at"])
                for row in results.rows()
            }
        return [found.get(action_id) for action_id in action_ids]

    async def _running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        async with self._sessions.snapshot() as snapshot:
            actions: dict[str, Action] = {}
            for start in range(0, len(action_ids), ROWS_MAX):
                actions |= await _actions_in(snapshot, action_ids[start : start + ROWS_MAX])
            live: dict[tuple[str, str], LiveRow] = {}
            for shard_id in range(self._shards):
                rows = RangeReader((after_us, _LAST_ID, ""), _ROWS_OF_SHARD, processing_key, after_processing)
                fixed = {"$shard_id": parameters.number(shard_id), "$until": parameters.time(until_us)}
                await read_ranges_in(snapshot, "moved_rows", fixed, [rows])
                live |= {(row["action_id"], row["action_guid"]): _live_row(row) for row in rows.rows}
            return await _inspection(snapshot, [_inspected(actions.get(action_id), live) for action_id in action_ids])

    async def _inspect(self, action_id: str, until_us: int) -> Inspection:
        async with self._sessions.snapshot() as snapshot:
            action = (await _actions_in(snapshot, [action_id])).get(action_id)
            live = None
            if action is not None:
                live = await self._processing_row(snapshot, action, max(until_us, action.scheduled_at_us))
                live = live or await self._incoming_row(snapshot, action)
            return await _inspection(snapshot, [Inspected(action, live)])

    async def _processing_row(self, snapshot: Snapshot, action: Action, until_us: int) -> LiveRow | None:
        for shard_id in range(self._shards):
            rows = RangeReader((action.scheduled_at_us, "", ""), 1, processing_key, after_processing)
            fixed = {**_names(shard_id, action), "$until": parameters.time(until_us)}
            await read_ranges_in(snapshot, "processing_row", fixed, [rows])
            if rows.rows:
                return _live_row(rows.rows[0])
        return None

    async def _incoming_row(self, snapshot: Snapshot, action: Action) -> LiveRow | None:
        for shard_id in range(self._shards):
            rows = RangeReader((0, "", ""), 1, incoming_key, after_incoming)
            await read_ranges_in(snapshot, "incoming_row", _names(shard_id, action), [rows])
            if rows.rows:
                created_at_us, action_id, guid = incoming_key(rows.rows[0])
                due_us = rows.rows[0]["scheduled_at"]
                row = Row(Queue.INCOMING, shard_id, created_at_us, action_id, guid, due_us)
                return LiveRow(row, created_at_us)
        return None


def _names(shard_id: int, action: Action) -> Parameters:
    return {
        "$shard_id": parameters.number(shard_id),
        "$action_id": parameters.text(action.action_id),
        "$guid": parameters.text(action.guid),
    }


async def _actions_in(snapshot: Snapshot, action_ids: Sequence[str]) -> dict[str, Action]:
    results = await snapshot.read("get", {"$keys": parameters.action_keys(list(dict.fromkeys(action_ids)))})
    return {row["meta_action_id"]: action_of(row) for row in results.rows()}


def _inspected(action: Action | None, live: dict[tuple[str, str], LiveRow]) -> Inspected:
    return Inspected(action, None if action is None else live.get((action.action_id, action.guid)))


def _live_row(row: ColumnValues) -> LiveRow:
    at_us, action_id, guid = processing_key(row)
    return LiveRow(
        Row(Queue.PROCESSING, row["shard_id"], at_us, action_id, guid, at_us, row["last_reschedule_at"]),
        row["added_to_incoming_queue_at"],
        row["moved_from_incoming_to_processing_queue_by_sync_with_guid"],
        row["moved_from_incoming_to_processing_queue_at"],
        row["last_reschedule_by_sync_with_guid"],
    )


async def _inspection(snapshot: Snapshot, actions: list[Inspected]) -> Inspection:
    locks = RangeReader((0,), ALL_LOCKS, lambda row: (row["shard_id"] + 1,), from_shard)
    results = await read_ranges_in(snapshot, "lock_rows", {}, [locks])
    rows = [
        LockRow(
            row["shard_id"],
            row["locked"],
            row["last_lock_guid"],
            row["last_locked_by"],
            row["last_processing_start_at"],
            row["last_heartbeat_at"],
        )
        for row in locks.rows
    ]
    return Inspection(actions, rows, results.rows(1)[0]["store_now"])
