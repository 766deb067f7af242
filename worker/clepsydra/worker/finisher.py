"""Gathers attempts that have ended, and writes their outcomes in batches.

What an outcome means is decided when the attempt ends; while one batch is being written, the next one gathers.
"""

import asyncio
from collections.abc import Callable, Iterable

from structlog.typing import FilteringBoundLogger

from clepsydra.core.events import Event, Failed, Interrupted, Succeeded
from clepsydra.core.ids import Ids
from clepsydra.core.moments import END_OF_TIME_US
from clepsydra.core.transitions import Moment, step
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.result import SUCCESS, Result
from clepsydra.worker.tally import Tally
from clepsydra.worker.usual import Ended, usual_success
from clepsydra.worker.writing import Writing

_OUTCOMES = action_pb2.Attempt
_DONE = AdvanceOutcome.DONE


# An attempt that has ended, how, and what that means for its action.
Ending = tuple[Attempt, Result, Advance]


class Finisher:
    def __init__(self, writing: Writing, ids: Ids, batch: int, tally: Tally, log: FilteringBoundLogger) -> None:
        self._writing = writing
        self._ids = ids
        self._batch = batch
        self._tally = tally
        self._log = log
        self._endings: list[Ending] = []
        self._wake = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        # Called with the number of attempts whose outcomes are written, or given up.
        self.when_written: Callable[[int], None] = lambda places: None
        # Called with a shard and the earliest time to which outcomes have moved rows of it.
        self.when_moved: Callable[[int, int], None] = lambda shard_id, at_us: None

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            batch, self._endings = self._endings[: self._batch], self._endings[self._batch :]
            if not batch:
                self._wake.clear()
                self._is_idle.set()
                continue
            await self._finish(batch)
            self.when_written(len(batch))

    def ended(self, attempts: Iterable[tuple[Attempt, Result]], moment: Ended) -> None:
        """These have ended at that moment."""
        self._endings += [(attempt, result, self.meaning(attempt, result, moment)) for attempt, result in attempts]
        self._is_idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Wait until every outcome so far is written."""
        while not self._is_idle.is_set():  # what ended while we were being woken is waited for, too
            await self._is_idle.wait()

    def meaning(self, attempt: Attempt, result: Result, ended: Ended) -> Advance:
        """What the outcome means for the action."""
        usual = usual_success(attempt, ended) if result is SUCCESS else None
        if usual is not None:
            return usual
        event, row = _event(result, attempt.record(result, ended.us)), attempt.row
        moment = Moment(ended.us, row.at_us, self._ids.fraction())
        status, at_us = step(attempt.spec, attempt.status, event, moment)
        written = None if at_us is None else status.SerializeToString()
        return Advance(row, at_us, attempt.action.scheduled_at_us, written, at_us)

    async def _finish(self, batch: list[Ending]) -> None:
        # Once the rows have come due again, other workers take them up: there is nothing left to win.
        advances = [advance for _, _, advance in batch]
        until_us = max([advance.row.at_us for advance in advances])
        try:
            outcomes = await self._writing.advance(advances, until_us)
        except (Unavailable, OutcomeUnknown) as error:
            self._log.error("outcomes could not be written", attempts=len(batch), error=str(error))
            self._tally.interrupted += len(batch)
            return
        succeeded, earliest = 0, dict[int, int]()
        for (attempt, result, (row, to_us, *_)), outcome in zip(batch, outcomes, strict=True):
            if outcome is not _DONE:
                self._superseded(attempt, outcome)
                continue
            if result is SUCCESS:
                succeeded += 1
            else:
                self._unsuccessful(attempt, result)
            if to_us is not None and to_us < earliest.get(row.shard_id, END_OF_TIME_US):
                earliest[row.shard_id] = to_us
        self._tally.succeeded += succeeded
        for shard_id, at_us in earliest.items():
            self.when_moved(shard_id, at_us)

    def _unsuccessful(self, attempt: Attempt, result: Result) -> None:
        if result.outcome == _OUTCOMES.INTERRUPTION:
            self._tally.interrupted += 1
        else:
            self._tally.failed += 1
            self._log.info(
                "an attempt failed",
                action=attempt.action.action_id,
                attempt=attempt.number,
                error=result.error,
            )

    def _superseded(self, attempt: Attempt, outcome: AdvanceOutcome) -> None:
        self._tally.superseded += 1
        self._log.info(
            "an outcome was not accepted: the action was changed or taken over meanwhile",
            action=attempt.action.action_id,
            attempt=attempt.id,
            row=outcome.value,
        )


def _event(result: Result, record: action_pb2.Attempt) -> Event:
    if result.outcome == _OUTCOMES.SUCCESS:
        return Succeeded(record)
    if result.outcome == _OUTCOMES.INTERRUPTION:
        return Interrupted(record)
    return Failed(record, result.retryable, result.retry_after_us)
