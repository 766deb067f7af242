"""Reads of actions and of rows, each from one snapshot."""

from collections.abc import Iterable, Sequence
from typing import Any

from clepsydra.core.tables import make_action, make_due, make_row
from clepsydra.store.port import (
    Action,
    Due,
    Inspected,
    Inspection,
    LiveRow,
    LockRow,
    Page,
    Queue,
    Row,
    StalePage,
    Version,
)
from clepsydra.store.postgres.calls import Calls

# Looking up a member of an enum takes time, and this is done for every row that is executed.
_INCOMING, _PROCESSING = Queue.INCOMING, Queue.PROCESSING


class Reads:
    _calls: Calls

    async def now(self) -> int:
        [[now_us]] = await self._calls.read("clock")
        return int(now_us)

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        if not action_ids:
            return []
        found = {fields[0]: Action(*fields) for fields in await self._calls.read("get", list(action_ids))}
        return [found.get(action_id) for action_id in action_ids]

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return [Action(*fields) for fields in await self._calls.read("list_actions", after_id or "", limit)]

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        wanted = list(action_ids)
        actions, rows, locks, [[now_us]] = await self._calls.inspect(
            ("get", wanted), ("rows_between", wanted, after_us, until_us), ("lock_rows",), ("clock",)
        )
        found = {fields[0]: Action(*fields) for fields in actions}
        live = {(each.row.action_id, each.row.guid): each for each in map(_processing_row, rows)}
        return Inspection(
            [
                Inspected(action, None if action is None else live.get((action.action_id, action.guid)))
                for action in map(found.get, wanted)
            ],
            [LockRow(*fields) for fields in locks],
            now_us,
        )

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        actions, moved, arrived, locks, [[now_us]] = await self._calls.inspect(
            ("get", [action_id]),
            ("processing_row", action_id, until_us),
            ("incoming_row", action_id),
            ("lock_rows",),
            ("clock",),
        )
        rows = [*map(_processing_row, moved), *map(_incoming_row, arrived)]
        action = Action(*actions[0]) if actions else None
        live = rows[0] if rows else None
        return Inspection([Inspected(action, live)], [LockRow(*fields) for fields in locks], now_us)

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        rows = await self._calls.read("versions", list(action_ids))
        found = {action_id: Version(guid, scheduled_at_us) for action_id, guid, scheduled_at_us in rows}
        return [found.get(action_id) for action_id in action_ids]

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
        rows = await self._calls.read(
            "due", shard_id, incoming_from_us, incoming_limit, from_us, until_us, limit, *after
        )
        incoming: list[Due] = []
        due: list[Due] = []
        for is_incoming, at_us, action_id, guid, due_us, rescheduled_us, meta, spec, status, planned_us in rows:
            action = None if meta is None else make_action((action_id, guid, meta, spec, status, planned_us))
            queue = _INCOMING if is_incoming else _PROCESSING
            row = make_row((queue, shard_id, at_us, action_id, guid, due_us, rescheduled_us))
            (incoming if is_incoming else due).append(make_due((row, action)))
        return Page(incoming, due)

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        rows = await self._calls.read("soon", shard_id, incoming_from_us, until_us, limit)
        return [Row(Queue.INCOMING, shard_id, *fields) for fields in rows]

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        start = max(after or (from_us, "", ""), (from_us, "", ""))
        # One row more than the page has shows whether there is another page.
        rows = await self._calls.read("stale_page", shard_id, *start, limit + 1)
        page = rows[:limit]
        stale = [
            Row(Queue.PROCESSING, shard_id, scheduled_at_us, action_id, guid, scheduled_at_us, rescheduled_at_us)
            for scheduled_at_us, action_id, guid, rescheduled_at_us, is_stale in page
            if is_stale
        ]
        last = page[-1] if len(rows) > limit else None
        return StalePage(stale, None if last is None else (last[0], last[1], last[2]), len(page))


def _processing_row(fields: Iterable[Any]) -> LiveRow:
    shard_id, at_us, action_id, guid, rescheduled_at_us, *provenance = fields
    return LiveRow(Row(Queue.PROCESSING, shard_id, at_us, action_id, guid, at_us, rescheduled_at_us), *provenance)


def _incoming_row(fields: Iterable[Any]) -> LiveRow:
    shard_id, created_at_us, action_id, guid, scheduled_at_us = fields
    return LiveRow(Row(Queue.INCOMING, shard_id, created_at_us, action_id, guid, scheduled_at_us), created_at_us)
