"""The reads of schedulers and workers, each in one snapshot."""

from collections.abc import Sequence

from clepsydra.store.port import Action, Due, Page, Queue, Row, StalePage
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import ROWS_MAX
from clepsydra.store.ydb.connection.sessions import ColumnValues, Parameters, Results, Sessions
from clepsydra.store.ydb.retry import Retry


class Reads:
    _sessions: Sessions
    _retry: Retry

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        if not action_ids:
            return []
        found = await self._retry.call(lambda: self._find(list(dict.fromkeys(action_ids))))
        return [found.get(action_id) for action_id in action_ids]

    async def _find(self, action_ids: Sequence[str]) -> dict[str, Action]:
        found: dict[str, Action] = {}
        for start in range(0, len(action_ids), ROWS_MAX):
            keys = parameters.action_keys(action_ids[start : start + ROWS_MAX])
            results = await self._sessions.read("get", {"$keys": keys})
            found |= {row["meta_action_id"]: action_of(row) for row in results.rows()}
        return found

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        after = (0, "") if after_id is None else (parameters.id_hash(after_id), after_id)
        results = await self._read("list_actions", parameters.after_action(after, limit))
        return [action_of(row) for row in results.rows()]

    async def due(
        self,
        shard_id: int,
        *,
        incoming_from_us: int,
        incoming_limit: int,
        from_us: int,
        until_us: int,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> Page:
        sent = {
            "$shard_id": parameters.number(shard_id),
            "$until": parameters.time(until_us),
            **_after_row("incoming", (incoming_from_us, "", ""), incoming_limit),
            **_after_row("processing", (from_us, *after), limit),
        }
        results = await self._read("due", sent)
        return Page(
            [Due(_incoming_row(shard_id, row), _live_action(row)) for row in results.rows(0)],
            [Due(_processing_row(shard_id, row), _live_action(row)) for row in results.rows(1)],
        )

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        sent = {
            "$shard_id": parameters.number(shard_id),
            "$until": parameters.time(until_us),
            **_after_row("incoming", (incoming_from_us, "", ""), limit),
        }
        results = await self._read("soon", sent)
        return [_incoming_row(shard_id, row) for row in results.rows()]

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        start = (from_us, "", "") if after is None else max(after, (from_us, "", ""))
        # One row more than wanted shows whether there is a next page.
        sent = {"$shard_id": parameters.number(shard_id), **_after_row("processing", start, limit + 1)}
        found = (await self._read("stale", sent)).rows()
        rows = found[:limit]
        return StalePage(
            [_processing_row(shard_id, row) for row in rows if not row["is_live"]],
            processing_key(rows[-1]) if len(found) > limit else None,
            len(rows),
        )

    async def now(self) -> int:
        results = await self._read("now", {})
        now_us: int = results.rows()[0]["store_now"]
        return now_us

    async def _read(self, name: str, sent: Parameters) -> Results:
        return await self._retry.call(lambda: self._sessions.read(name, sent))


def action_of(row: ColumnValues) -> Action:
    return Action(
        row["meta_action_id"],
        row["meta_action_guid"],
        row["meta"],
        row["spec"],
        row["status"],
        row["status_scheduled_at"],
    )


def _live_action(row: ColumnValues) -> Action | None:
    if not row["is_live"]:
        return None
    return Action(
        row["action_id"], row["action_guid"], row["meta"], row["spec"], row["status"], row["status_scheduled_at"]
    )


def _incoming_row(shard_id: int, row: ColumnValues) -> Row:
    return Row(Queue.INCOMING, shard_id, *incoming_key(row), row["scheduled_at"])


def _processing_row(shard_id: int, row: ColumnValues) -> Row:
    key = processing_key(row)
    return Row(Queue.PROCESSING, shard_id, *key, key[0], row["last_reschedule_at"])


def incoming_key(row: ColumnValues) -> tuple[int, str, str]:
    """The key within a shard."""
    return row["created_at"], row["action_id"], row["action_guid"]


def processing_key(row: ColumnValues) -> tuple[int, str, str]:
    """The key within a shard."""
    return row["scheduled_at"], row["action_id"], row["action_guid"]


def _after_row(queue: str, after: tuple[int, str, str], limit: int) -> Parameters:
    at_us, action_id, guid = after
    return {
        f"${queue}_at": parameters.time(max(0, at_us)),
        f"${queue}_id": parameters.text(action_id),
        f"${queue}_guid": parameters.text(guid),
        f"${queue}_limit": parameters.number(limit),
    }
