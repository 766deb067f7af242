"""What schedulers and workers read: each call sees one snapshot."""

from collections.abc import Sequence

import apsw

from clepsydra.core.clock import Clock
from clepsydra.store.port import Action, Page, Queue, Row, StalePage
from clepsydra.store.sqlite.connection.connect import fetch
from clepsydra.store.sqlite.connection.multi_row_insert import load
from clepsydra.store.sqlite.connection.thread import OperationRunner
from clepsydra.store.sqlite.page_reader import read_page


class Reads:
    _clock: Clock
    _reader: OperationRunner

    async def now(self) -> int:
        return self._clock.now_us()

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        if not action_ids:
            return []
        return await self._reader.run(lambda connection: get_actions(connection, action_ids))

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        bounds = {"after": after_id or "", "limit": limit}
        rows = await self._reader.run(lambda connection: fetch(connection, "list_actions", bounds))
        return [Action(*columns) for columns in rows]

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
        incoming = {"from_at": incoming_from_us, "limit": incoming_limit}
        from_id, from_guid = after
        due = {"from_at": from_us, "from_id": from_id, "from_guid": from_guid, "until": until_us, "limit": limit}

        def read(connection: apsw.Connection) -> Page:
            return Page(
                read_page(connection, Queue.INCOMING, shard_id, "incoming", incoming),
                read_page(connection, Queue.PROCESSING, shard_id, "due", due),
            )

        return await self._reader.run(read)

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        bounds = {"shard_id": shard_id, "from_at": incoming_from_us, "until": until_us, "limit": limit}
        rows = await self._reader.run(lambda connection: fetch(connection, "soon", bounds))
        return [Row(Queue.INCOMING, shard_id, *columns) for columns in rows]

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        # After the row, and not before the time, whichever is later.
        start = (from_us - 1, "\U0010ffff", "")
        at_us, action_id, guid = start if after is None else max(after, start)
        # One row more than the page has shows whether there is another page.
        position = {"shard_id": shard_id, "at": at_us, "action_id": action_id, "guid": guid, "limit": limit + 1}
        rows = await self._reader.run(lambda connection: fetch(connection, "stale_page", position))
        page = rows[:limit]
        stale = [
            Row(Queue.PROCESSING, shard_id, scheduled_at, action_id, guid, scheduled_at, rescheduled_at)
            for scheduled_at, action_id, guid, rescheduled_at, is_stale in page
            if is_stale
        ]
        last = page[-1] if len(rows) > limit else None
        return StalePage(stale, None if last is None else (last[0], last[1], last[2]), len(page))


def get_actions(connection: apsw.Connection, action_ids: Sequence[str]) -> list[Action | None]:
    if len(action_ids) == 1:
        rows = fetch(connection, "get_one", (action_ids[0],))
    else:
        load(connection, "action_ids", [(action_id,) for action_id in action_ids])
        rows = fetch(connection, "get")
    found = {columns[0]: Action(*columns) for columns in rows}
    return [found.get(action_id) for action_id in action_ids]
