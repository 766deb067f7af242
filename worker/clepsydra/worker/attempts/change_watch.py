"""Cancels attempts whose action was changed, paused, cancelled or deleted by a user, or taken over by a worker.

Every attempt that has run for a while is looked at, all of them in one cheap read at an interval; without such attempts
nothing is read. A new life that a sync loop reads among the arrivals of its shard is noticed at once.
"""

import asyncio
from collections.abc import Iterable, Sequence

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock
from clepsydra.core.times import MILLISECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Due, Store
from clepsydra.worker.attempts.leases import SUPERSEDED
from clepsydra.worker.attempts.pool import Pool
from clepsydra.worker.running import RunningAttempt
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally


class ChangeWatch:
    def __init__(
        self, pool: Pool, store: Store, clock: Clock, settings: WorkerSettings, tally: Tally, log: FilteringBoundLogger
    ) -> None:
        self._pool = pool
        self._store = store
        self._clock = clock
        self._interval_us = settings.changes_ms * MILLISECOND_US
        self._batch = settings.batch
        self._tally = tally
        self._log = log
        # Attempts that had run for an interval when they were last looked at, by the ids of their actions.
        self.watched: dict[str, RunningAttempt] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_us / 1_000_000)
            watched = self._begun_before(self._clock.now_us() - self._interval_us)
            self.watched = {running.attempt.action.action_id: running for running in watched}
            try:
                for start in range(0, len(watched), self._batch):
                    await self._look(watched[start : start + self._batch])
            except (Unavailable, OutcomeUnknown) as error:
                # The leases bound how long an attempt goes on unnoticed.
                self._tally.store_failures += 1
                self._log.warning("changes of running actions could not be read", error=str(error))

    def arrived(self, rows: Iterable[Due]) -> None:
        """These rows have come into a shard: a new life of an action ends the attempt at an earlier one."""
        for row, action in rows:
            running = self.watched.get(row.action_id)
            if running is not None and action is not None and action.guid != running.attempt.action.guid:
                self._pool.cancel(running, SUPERSEDED)

    def _begun_before(self, at_us: int) -> list[RunningAttempt]:
        found = []
        for running in self._pool.running():
            if running.attempt.started_us > at_us:
                # They come in the order in which they started.
                break
            found.append(running)
        return found

    async def _look(self, attempts: Sequence[RunningAttempt]) -> None:
        versions = await self._store.versions([running.attempt.action.action_id for running in attempts])
        for running, version in zip(attempts, versions, strict=True):
            action = running.attempt.action
            if version != (action.guid, action.scheduled_at_us):
                self._pool.cancel(running, SUPERSEDED)
