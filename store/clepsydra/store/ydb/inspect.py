"""Where the live rows of actions are. Each call reads the shards one after the other, within one snapshot."""

from collections.abc import Sequence
from functools import partial

from clepsydra.store.port import Action, Inspected, Inspection, LiveRow, LockRow, Queue, Row, Version
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import ROWS_MAX
from clepsydra.store.ydb.connection.sessions import ColumnValues, Parameters, Sessions, Snapshot
from clepsydra.store.ydb.read import action_of, incoming_key, processing_key
from clepsydra.store.ydb.retry import Retry


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
                sent = {"$shard_id": parameters.number(shard_id), **_between(after_us + 1, until_us)}
                rows = (await snapshot.read("moved_rows", sent)).rows()
                live |= {(row["action_id"], row["action_guid"]): _live_row(row) for row in rows}
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
            sent = {**_names(shard_id, action), **_between(action.scheduled_at_us, until_us)}
            for row in (await snapshot.read("processing_row", sent)).rows():
                return _live_row(row)
        return None

    async def _incoming_row(self, snapshot: Snapshot, action: Action) -> LiveRow | None:
        for shard_id in range(self._shards):
            for row in (await snapshot.read("incoming_row", _names(shard_id, action))).rows():
                key = incoming_key(row)
                return LiveRow(Row(Queue.INCOMING, shard_id, *key, row["scheduled_at"]), key[0])
        return None


def _between(from_us: int, until_us: int) -> Parameters:
    return {"$from": parameters.time(from_us), "$until": parameters.time(until_us)}


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
    results = await snapshot.read("lock_rows", {"$from_shard": parameters.number(0)})
    locks = [
        LockRow(
            row["shard_id"],
            row["locked"],
            row["last_lock_guid"],
            row["last_locked_by"],
            row["last_processing_start_at"],
            row["last_heartbeat_at"],
        )
        for row in results.rows(0)
    ]
    return Inspection(actions, locks, results.rows(1)[0]["store_now"])
