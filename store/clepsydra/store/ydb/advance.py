"""The writes of workers: each is one serializable text that touches rows by their whole keys only."""

from collections.abc import Sequence
from functools import partial

from clepsydra.store.batch import check_named_once
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue, Row
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import split
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.retry import Retry

_OUTCOMES = {
    "done": AdvanceOutcome.DONE,
    "move": AdvanceOutcome.DONE,
    "remove": AdvanceOutcome.DONE,
    "stale": AdvanceOutcome.STALE,
    "gone": AdvanceOutcome.GONE,
}


class Advances:
    _sessions: Sessions
    _retry: Retry

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        parts = []
        for queue in (Queue.PROCESSING, Queue.INCOMING):
            indexes = [index for index, advance in enumerate(advances) if advance.row.queue is queue]
            parts += split(indexes, [len(advances[index].status or b"") for index in indexes])
        results = await self._retry.batch(parts, partial(self._send_advances, advances, mark))
        return [outcome for result, certainty in results for outcome in certainty.advance_outcomes([result])]

    async def _send_advances(
        self, advances: Sequence[Advance], mark: Mark, indexes: Sequence[int]
    ) -> dict[int, AdvanceOutcome]:
        """All rows of a part are in the same queue."""
        is_incoming = advances[indexes[0]].row.queue is Queue.INCOMING
        batch = parameters.advances([(index, advances[index]) for index in indexes])
        results = await self._sessions.write(
            "advance_from_incoming" if is_incoming else "advance_in_processing",
            {"$advances": batch, **parameters.marked(mark)},
        )
        return {row["n"]: _OUTCOMES[row["judgement"]] for row in results.rows()}

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        """Rows that a try of unknown outcome has moved are not counted."""
        incoming = list(dict.fromkeys(row for row in rows if row.queue is Queue.INCOMING))
        moved = 0

        async def send(indexes: Sequence[int]) -> dict[int, None]:
            nonlocal moved
            keys = parameters.incoming_keys([incoming[index] for index in indexes])
            results = await self._sessions.write("migrate", {"$rows": keys, **parameters.marked(mark)})
            moved += sum(row["moved"] for row in results.rows())
            return dict.fromkeys(indexes)

        await self._retry.batch(split(range(len(incoming))), send)
        return moved

    async def drop(self, rows: Sequence[Row]) -> None:
        async def send(indexes: Sequence[int]) -> dict[int, None]:
            await self._send_drop([rows[index] for index in indexes])
            return dict.fromkeys(indexes)

        await self._retry.batch(split(range(len(rows))), send)

    async def check_writable(self) -> None:
        """Drop no rows: the server checks the permission before it finds that there is nothing to do."""
        await self._retry.call(lambda: self._send_drop([]))

    async def _send_drop(self, rows: Sequence[Row]) -> None:
        incoming = parameters.incoming_keys([row for row in rows if row.queue is Queue.INCOMING])
        processing = parameters.processing_keys([row for row in rows if row.queue is Queue.PROCESSING])
        await self._sessions.write("drop", {"$incoming": incoming, "$processing": processing})
