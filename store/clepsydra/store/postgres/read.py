"""Reads of actions and of rows, each from one snapshot."""

from collections.abc import Sequence

from clepsydra.core.tables import make_action, make_due, make_row
from clepsydra.store.port import Action, Due, Page, Queue, Row, StalePage
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
