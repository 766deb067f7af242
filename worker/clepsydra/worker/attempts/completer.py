"""Writes the outcomes of attempts in batches.

What an outcome means is planned when the attempt ends. While one batch is being written, the next one collects.
"""

import asyncio
from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import SUCCESS, Attempt, Result
from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.core.lifecycle import plan_ends
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.attempts.attempt_log import AttemptLog
from clepsydra.worker.tally import Tally

# Looking up a member of an enum takes time, and this is compared for every action.
_DONE = AdvanceOutcome.DONE

# An attempt, how it ended, what to write for it, and when it ended.
Outcome = tuple[Attempt, Result, Advance, int]


class Completer:
    def __init__(
        self, writer: AdvanceWriter, clock: Clock, ids: Ids, batch: int, tally: Tally, log: FilteringBoundLogger
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._ids = ids
        self._batch = batch
        self._tally = tally
        self._log = log
        self._attempt_log = AttemptLog(log)
        self._unwritten: list[Outcome] = []
        self._wake = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        # Called with the attempts whose outcomes were written, or given up.
        self.when_written: Callable[[Sequence[Attempt]], None] = lambda attempts: None
        # Called with a shard and the earliest time to which outcomes have moved rows of it.
        self.when_moved: Callable[[int, int], None] = lambda shard_id, at_us: None

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            batch, self._unwritten = self._unwritten[: self._batch], self._unwritten[self._batch :]
            if not batch:
                self._wake.clear()
                self._is_idle.set()
                continue
            await self._write(batch)
            self.when_written([attempt for attempt, *_ in batch])

    def complete(self, attempts: Sequence[tuple[Attempt, Result]], ended_us: int) -> None:
        """These attempts have ended, all at this time."""
        fraction = self._ids.fraction
        ended = [(attempt, result, 0.5 if result is SUCCESS else fraction()) for attempt, result in attempts]
        advances = plan_ends(ended, ended_us)
        self._unwritten += [(*pair, advance, ended_us) for pair, advance in zip(attempts, advances, strict=True)]
        self._is_idle.clear()
        self._wake.set()

    async def drained(self) -> None:
        """Wait until every outcome so far is written."""
        while not self._is_idle.is_set():  # more may have ended while this was being woken
            await self._is_idle.wait()

    async def _write(self, batch: list[Outcome]) -> None:
        advances = [advance for _, _, advance, _ in batch]
        # Rows that have come due may be taken over meanwhile; if the store was away, no worker could.
        until_us = max([advance.row.at_us for advance in advances] + [self._clock.now_us() + CALL_RETRY_US])
        try:
            outcomes = await self._writer.advance(advances, until_us)
        except (Unavailable, OutcomeUnknown) as error:
            self._log.error("outcomes could not be written", attempts=len(batch), error=str(error))
            self._tally.interrupted += len(batch)
            return
        succeeded, earliest = 0, dict[int, int]()
        shows_successes = self._attempt_log.shows_successes
        for (attempt, result, advance, ended_us), outcome in zip(batch, outcomes, strict=True):
            if outcome is not _DONE:
                self._tally.superseded += 1
                self._attempt_log.superseded(attempt, result, ended_us)
                continue
            if result is not SUCCESS:
                self._failed(attempt, result, advance, ended_us)
            else:
                succeeded += 1
                if shows_successes:
                    self._attempt_log.succeeded(attempt, result, advance, ended_us)
            row, to_us, *_ = advance
            if to_us is not None and to_us < earliest.get(row.shard_id, END_OF_TIME_US):
                earliest[row.shard_id] = to_us
        self._tally.succeeded += succeeded
        for shard_id, at_us in earliest.items():
            self.when_moved(shard_id, at_us)

    def _failed(self, attempt: Attempt, result: Result, advance: Advance, ended_us: int) -> None:
        if result.outcome == action_pb2.Attempt.INTERRUPTION:
            self._tally.interrupted += 1
        else:
            self._tally.failed += 1
        self._attempt_log.failed(attempt, result, advance, ended_us)
