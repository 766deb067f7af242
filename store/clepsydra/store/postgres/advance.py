"""The writes of workers: a batch goes in the order of action ids.

Nearly all batches of advances are of one kind, and all of their rows are as they were seen. Such a batch is written
without being judged, which takes the server far less time. If that does not do all of it, the batch is judged item by
item, under the same mark, by which the judgement recognises what is done already.
"""

from collections.abc import Iterable, Sequence

import asyncpg

from clepsydra.store.batch import check_named_once
from clepsydra.store.errors import StoreError
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue, Row
from clepsydra.store.postgres.array_parameters import advance_parameters, key_parameters, number_array, text_array
from clepsydra.store.postgres.calls import Calls, Retry
from clepsydra.store.postgres.put import LOST

_OUTCOMES = {"stale": AdvanceOutcome.STALE, "gone": AdvanceOutcome.GONE}

_BEGIN = {Queue.INCOMING: "begin_from_incoming", Queue.PROCESSING: "begin_in_processing"}

# What a finish that rolls back leaves in the server's log.
_NOT_ALL_FINISHED = "clepsydra: an action was changed while it was executed, so this batch is looked at one by one"


class Advances:
    _calls: Calls

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        order = sorted(range(len(advances)), key=lambda n: advances[n].row.action_id)
        retry = Retry()
        if await self._advance_uniform([advances[n] for n in order], mark, retry):
            return [AdvanceOutcome.DONE] * len(advances)
        return await self._judge_and_advance(advances, order, mark, retry)

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        if not rows:
            return 0
        incoming = [row for row in rows if row.queue is Queue.INCOMING]
        [[moved]] = await self._calls.write("migrate", *key_parameters(_in_order(incoming)), *mark)
        return int(moved)

    async def drop(self, rows: Sequence[Row]) -> None:
        if rows:
            await self._calls.write("drop", *key_parameters(_in_order(rows)))

    async def _advance_uniform(self, advances: Sequence[Advance], mark: Mark, retry: Retry) -> bool:
        """Write a batch of begins from one queue, or of finishes. Returns whether all of it was done."""
        count = len(advances)
        rows, to, seen, status, planned = zip(*advances, strict=True)
        queues, shards, at, action_ids, guids, _due, _rescheduled = zip(*rows, strict=True)
        queue = queues[0]
        if None in to or queues.count(queue) < count:
            return False
        keys = number_array(shards), number_array(at), text_array(action_ids), text_array(guids)
        try:
            if status.count(None) == seen.count(None) == count:
                found = await self._calls.write(_BEGIN[queue], *keys, number_array(to), *mark, retry=retry)
            elif queue is Queue.PROCESSING and None not in status and None not in seen:
                outcome = number_array(seen), status, number_array(planned)
                batch = *keys, number_array(to), *outcome, *mark, count, _NOT_ALL_FINISHED
                found = await self._calls.write("finish_in_processing", *batch, retry=retry)
            else:
                return False
        except StoreError as error:
            if isinstance(error.__cause__, asyncpg.InvalidTextRepresentationError | asyncpg.UniqueViolationError):
                return False
            raise
        done: int = found[0][0]
        retry.is_partly_done = 0 < done < count
        return done == count

    async def _judge_and_advance(
        self, advances: Sequence[Advance], pending: list[int], mark: Mark, retry: Retry
    ) -> list[AdvanceOutcome]:
        """Send the batch, and again what was lost. The statement returns what it has not done."""
        outcomes = [AdvanceOutcome.DONE] * len(advances)
        while pending:
            lost = []
            for place, judgement in await self._write_judged([advances[n] for n in pending], mark, retry):
                n = pending[place]
                if judgement == LOST:
                    lost.append(n)
                else:
                    outcomes[n] = _OUTCOMES[judgement]
            if lost:
                retry.judge_again()
            pending = lost
        return retry.certainty.advance_outcomes(outcomes)

    async def _write_judged(self, advances: Sequence[Advance], mark: Mark, retry: Retry) -> list[asyncpg.Record]:
        batch = advance_parameters(advances)
        try:
            return await self._calls.write("advance", *batch, *mark, retry=retry)
        except StoreError as error:
            if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
                raise
        # An action has two live rows, which happens in a damaged installation only. Workers must be able to go on.
        *keys_and_to, _seen, _status, _planned = batch
        await self._calls.write("make_room", *keys_and_to, retry=retry)
        return await self._calls.write("advance", *batch, *mark, retry=retry)


def _in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.action_id)
