"""A worker: several sync loops, a bounded pool of attempts, and one completer that writes their outcomes."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt
from clepsydra.core.clock import Clock, DisciplinedClock
from clepsydra.core.ids import Ids, WorkerGuids
from clepsydra.core.plan import BeginTerms
from clepsydra.core.times import MILLISECOND_US
from clepsydra.store.port import Store
from clepsydra.store.store_clock import read_store_clock
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.attempts.change_watch import ChangeWatch
from clepsydra.worker.attempts.completer import Completer
from clepsydra.worker.attempts.dispatch import Dispatcher
from clepsydra.worker.attempts.leases import LeaseKeeper
from clepsydra.worker.attempts.pool import Pool
from clepsydra.worker.attempts.users_loop import SameLoop, UsersLoop
from clepsydra.worker.attempts.watchdog import Watchdog
from clepsydra.worker.loop.backlog import Backlog
from clepsydra.worker.loop.early_migration import EarlyMigration
from clepsydra.worker.loop.heartbeat import ShardLocks
from clepsydra.worker.loop.shard import Shard
from clepsydra.worker.loop.stale_rows import StaleRowCollector
from clepsydra.worker.loop.sync import SyncLoop
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets

_CANCELLED_WITHIN_S = 5.0


class Worker:
    """`run` works until `stop` is called, and then drains: attempts are finished, locks are released."""

    def __init__(
        self,
        store: Store,
        targets: Targets,
        machine: Clock,
        ids: Ids,
        settings: WorkerSettings,
        name: str,
        log: FilteringBoundLogger,
        users: UsersLoop | None = None,
    ) -> None:
        self.tally = tally = targets.tally
        self._store = store
        self._targets = targets
        self._settings = settings
        self._log = log.bind(worker=name)
        self._clock = clock = DisciplinedClock(machine)
        self._stop = asyncio.Event()

        guids = WorkerGuids(ids)

        def writer(guid: str) -> AdvanceWriter:
            return AdvanceWriter(store, clock, ids, tally, guid)

        self._locks = ShardLocks(store, clock, settings, name, tally, self._log)
        self._completer = Completer(writer(guids.sync()), clock, ids, settings.batch, tally, self._log)
        self._users = users or SameLoop()
        self._dispatcher = Dispatcher(targets, self._users, clock)
        self._pool = Pool(
            settings,
            targets,
            self._dispatcher,
            self._completer,
            clock,
            tally,
            self._log,
        )
        self._watchdog = Watchdog(self._users, self._dispatcher, self._pool, targets.capacity, clock, tally, self._log)
        self._leases = LeaseKeeper(self._pool, writer(guids.leases), clock, settings, self._log)
        self._changes = ChangeWatch(self._pool, store, clock, settings, tally, self._log)
        terms = BeginTerms(name, settings.lease_us, settings.grace_us, settings.set_aside_ms * MILLISECOND_US)
        early_migration = EarlyMigration(store, clock, settings, tally)
        backlogs: dict[int, Backlog] = {}
        self._loops = [
            SyncLoop(
                store,
                self._locks,
                self._pool,
                self._changes,
                terms,
                early_migration,
                backlogs,
                clock,
                ids,
                guids,
                settings,
                tally,
                self._log,
            )
            for _ in range(min(settings.loops, store.shards))
        ]
        self._stale_rows = StaleRowCollector(store, self._held_shards, clock, settings, tally, self._log)
        self._completer.when_moved = self._moved
        targets.capacity.when_freed = self._freed

    async def run(self) -> None:
        await read_store_clock(self._store, self._clock)
        self._users.start()
        await self._targets.start()
        self._log.info("the worker has started", shards=self._store.shards, loops=len(self._loops))
        background = [
            asyncio.ensure_future(part.run())
            for part in (
                self._locks,
                self._completer,
                self._leases,
                self._changes,
                self._stale_rows,
                self._watchdog,
            )
        ]
        loops = [asyncio.ensure_future(loop.run()) for loop in self._loops]
        stop = asyncio.ensure_future(self._stop.wait())
        parts: list[asyncio.Future[Any]] = [stop, *loops, *background]
        try:
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            _raise_first([*background, *loops])
            parts.append(drained := asyncio.ensure_future(self._drain(loops)))
            await asyncio.wait([drained, *background], return_when=asyncio.FIRST_COMPLETED)
            _raise_first([drained, *background])
        finally:
            await _cancel(parts)
            await self._users.close()
            await self._targets.close()
            self._log.info("the worker has stopped", **_counters(self.tally))

    def attempts_in_flight(self) -> list[Attempt]:
        return [running.attempt for running in self._pool.running()]

    def stop(self) -> None:
        """Finish the attempts in flight, within the drain limit, and stop."""
        self._stop.set()

    async def _drain(self, loops: Sequence["asyncio.Future[None]"]) -> None:
        for loop in self._loops:
            loop.stop()
        await asyncio.gather(*loops)
        try:
            async with asyncio.timeout(self._settings.drain_ms / 1000):
                await self._pool.drained()
        except TimeoutError:
            self._log.warning("attempts are stopped: the drain limit has passed", attempts=self._pool.in_flight)
            self._pool.stop()
            await self._wait_for_cancelled()
        await self._completer.drained()
        # Other workers will find these interrupted.
        self.tally.interrupted += self._pool.in_flight

    async def _wait_for_cancelled(self) -> None:
        """Cancelled attempts end at once, unless a handler ignores the cancellation."""
        try:
            async with asyncio.timeout(_CANCELLED_WITHIN_S):
                await self._pool.drained()
        except TimeoutError:
            self._log.error("attempts are left behind: their handlers go on", attempts=self._pool.in_flight)

    def _held_shards(self) -> list[Shard]:
        return [loop.shard for loop in self._loops if loop.shard is not None]

    def _freed(self) -> None:
        # Another loop is the first each time, so that no shard's rows wait longer than those of others.
        self._loops.append(self._loops.pop(0))
        for loop in self._loops:
            loop.freed()

    def _moved(self, shard_id: int, at_us: int) -> None:
        for loop in self._loops:
            if loop.shard is not None and loop.shard.shard_id == shard_id:
                loop.wrote(at_us)


def _raise_first(parts: Iterable["asyncio.Future[None]"]) -> None:
    for part in parts:
        if part.done() and (error := part.exception()) is not None:
            raise error


async def _cancel(parts: Sequence["asyncio.Future[Any]"]) -> None:
    for part in parts:
        part.cancel()
    # What they raise now follows from the error that ends the worker, and is not reported beside it.
    await asyncio.gather(*parts, return_exceptions=True)


def _counters(tally: Tally) -> dict[str, int]:
    return {name: getattr(tally, name) for name in tally.__slots__ if getattr(tally, name)}
