"""Extends the leases of long attempts, in batches and well before they end.

So whatever an attempt's timeout, the work of a dead worker is taken over within a lease. Leases are extended early and
often, so that a worker that stands still for a while keeps them: at least five eighths of a lease are always left.

An attempt whose lease cannot be extended is cancelled: by the pool's timer if the store does not answer, at once if its
row is gone.
"""

import asyncio
import contextlib

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.clock import Clock
from clepsydra.core.times import seconds
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome, Row
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.attempts.pool import Pool
from clepsydra.worker.running import RunningAttempt
from clepsydra.worker.settings import WorkerSettings

SUPERSEDED = Result(action_pb2.Attempt.INTERRUPTION, "its action was changed or taken over")


class LeaseKeeper:
    def __init__(
        self, pool: Pool, writer: AdvanceWriter, clock: Clock, settings: WorkerSettings, log: FilteringBoundLogger
    ) -> None:
        self._pool = pool
        self._writer = writer
        self._clock = clock
        self._lease_us = settings.lease_us
        self._grace_us = settings.grace_us
        self._batch = settings.batch
        self._log = log
        self._is_urgent = asyncio.Event()
        pool.when_lease_is_over = self._is_urgent.set
        pool.extend = self.extend

    async def run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds(self._lease_us // 8)):
                    await self._is_urgent.wait()
            self._is_urgent.clear()
            soon_us = self._clock.now_us() + self._lease_us * 3 // 4
            ending = [
                running
                for running in self._pool.running()
                if running.attempt.lease_ends_us < min(soon_us, running.attempt.deadline_us)
                and running.extension is None
            ]
            await self.extend(ending)

    async def extend(self, attempts: list[RunningAttempt]) -> list[RunningAttempt]:
        """Returns the attempts whose leases were extended."""
        extended: list[RunningAttempt] = []
        for start in range(0, len(attempts), self._batch):
            extended += await self._extend(attempts[start : start + self._batch])
        return extended

    async def _extend(self, attempts: list[RunningAttempt]) -> list[RunningAttempt]:
        # An attempt that ends while its extension is under way waits for it: the two never overlap.
        extension: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for running in attempts:
            running.extension = extension
        try:
            return await self._extend_rows(attempts)
        except (Unavailable, OutcomeUnknown) as error:
            self._log.warning("leases could not be extended", attempts=len(attempts), error=str(error))
            return []
        finally:
            for running in attempts:
                running.extension = None
            extension.set_result(None)

    async def _extend_rows(self, attempts: list[RunningAttempt]) -> list[RunningAttempt]:
        now_us = self._clock.now_us()
        advances = [extension_of(running.attempt, now_us, self._lease_us, self._grace_us) for running in attempts]
        # After the first of their ends, one of them would be extended too late. What is late already is worth a try.
        until_us = max(min(running.attempt.lease_ends_us for running in attempts), now_us + self._grace_us // 2)
        outcomes = await self._writer.advance(advances, until_us)
        extended = []
        for running, advance, outcome in zip(attempts, advances, outcomes, strict=True):
            if outcome is AdvanceOutcome.DONE:
                self._move(running.attempt, advance)
                running.lease_over_us = 0
                extended.append(running)
            else:
                self._pool.cancel(running, SUPERSEDED)
        return extended

    def _move(self, attempt: Attempt, advance: Advance) -> None:
        assert advance.to_us is not None
        row = attempt.row
        attempt.row = Row(row.queue, row.shard_id, advance.to_us, row.action_id, row.guid, advance.to_us)
        attempt.lease_ends_us = advance.to_us - self._grace_us


def extension_of(attempt: Attempt, now_us: int, lease_us: int, grace_us: int) -> Advance:
    """Move the attempt's row to the end of a new lease."""
    ends_us = min(attempt.deadline_us, now_us + lease_us)
    to_us = max(ends_us + grace_us, attempt.row.at_us + 1)
    return Advance(attempt.row, to_us, attempt.action.scheduled_at_us)
