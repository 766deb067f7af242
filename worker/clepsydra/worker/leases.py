"""Extends the leases of attempts that run for long, in batches and well before the time.

So whatever an attempt's timeout, the work of a dead worker is taken up again within a lease. An attempt whose lease
cannot be extended is cancelled: by its own timer if the store does not answer, at once if its row has gone.
"""

import asyncio

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock, seconds
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome, Row
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.pool import Pool
from clepsydra.worker.result import Result
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.writing import Writing

SUPERSEDED = Result(action_pb2.Attempt.INTERRUPTION, "its action was changed or taken over")


class Leases:
    def __init__(
        self, pool: Pool, writing: Writing, clock: Clock, settings: WorkerSettings, log: FilteringBoundLogger
    ) -> None:
        self._pool = pool
        self._writing = writing
        self._clock = clock
        self._lease_us = settings.lease_us
        self._grace_us = settings.grace_us
        self._batch = settings.batch
        self._log = log

    async def run(self) -> None:
        while True:
            await asyncio.sleep(seconds(self._lease_us // 4))
            soon_us = self._clock.now_us() + self._lease_us // 2
            ending = [
                attempt for attempt in self._pool.running() if attempt.lease_ends_us < min(soon_us, attempt.deadline_us)
            ]
            for start in range(0, len(ending), self._batch):
                await self._extend(ending[start : start + self._batch])

    async def _extend(self, attempts: list[Attempt]) -> None:
        # An attempt that ends while its extension is under way waits for it: the two never overlap.
        extension: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for attempt in attempts:
            attempt.extension = extension
        try:
            await self._extend_rows(attempts)
        except (Unavailable, OutcomeUnknown) as error:
            self._log.warning("leases could not be extended", attempts=len(attempts), error=str(error))
        finally:
            for attempt in attempts:
                attempt.extension = None
            extension.set_result(None)

    async def _extend_rows(self, attempts: list[Attempt]) -> None:
        now_us = self._clock.now_us()
        advances = [
            Advance(attempt.row, self._extended_to(attempt, now_us), attempt.action.scheduled_at_us)
            for attempt in attempts
        ]
        # Beyond the first of their ends, one of them would be extended too late.
        until_us = min(attempt.lease_ends_us for attempt in attempts)
        outcomes = await self._writing.advance(advances, until_us)
        for attempt, advance, outcome in zip(attempts, advances, outcomes, strict=True):
            if outcome is AdvanceOutcome.DONE:
                self._move(attempt, advance)
            else:
                self._pool.cancel(attempt, SUPERSEDED)

    def _extended_to(self, attempt: Attempt, now_us: int) -> int:
        ends_us = min(attempt.deadline_us, now_us + self._lease_us)
        return max(ends_us + self._grace_us, attempt.row.at_us + 1)

    def _move(self, attempt: Attempt, advance: Advance) -> None:
        assert advance.to_us is not None
        row = attempt.row
        attempt.row = Row(row.queue, row.shard_id, advance.to_us, row.action_id, row.guid, advance.to_us)
        attempt.lease_ends_us = advance.to_us - self._grace_us
