"""A worker: several sync loops, a bounded pool of attempts, and one finisher that writes their outcomes."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock, DisciplinedClock
from clepsydra.core.ids import Ids
from clepsydra.store.port import Store
from clepsydra.worker.collector import Collector
from clepsydra.worker.finisher import Finisher
from clepsydra.worker.leases import Leases
from clepsydra.worker.locks import Heart
from clepsydra.worker.overtaking import Overtaking
from clepsydra.worker.pool import Pool
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.shard import Shard
from clepsydra.worker.sync import SyncLoop
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets
from clepsydra.worker.turns import Turns
from clepsydra.worker.writing import Writing

_CANCELLED_WITHIN_S = 5.0


class Worker:
    """`run` works until `stop` is called, and then drains: what runs is finished, the locks are released."""

    def __init__(
        self,
        store: Store,
        targets: Targets,
        machine: Clock,
        ids: Ids,
        settings: WorkerSettings,
        name: str,
        log: FilteringBoundLogger,
    ) -> None:
        self.tally = tally = Tally()
        self._store = store
        self._targets = targets
        self._settings = settings
        self._log = log.bind(worker=name)
        self._clock = clock = DisciplinedClock(machine)
        self._stop = asyncio.Event()

        def writing() -> Writing:
            return Writing(store, clock, ids, tally, ids.guid())

        self._heart = Heart(store, clock, settings, name, tally, self._log)
        self._finisher = Finisher(writing(), ids, settings.batch, tally, self._log)
        self._pool = Pool(settings.attempts, targets, self._finisher, clock, tally, self._log)
        self._leases = Leases(self._pool, writing(), clock, settings, self._log)
        turns = Turns(settings, name)
        overtaking = Overtaking(store, clock, settings, tally)
        self._loops = [
            SyncLoop(store, self._heart, self._pool, turns, overtaking, clock, ids, settings, tally, self._log)
            for _ in range(min(settings.loops, store.shards))
        ]
        self._collector = Collector(store, self._held, clock, settings, tally, self._log)
        self._finisher.when_moved = self._moved

    async def run(self) -> None:
        self._clock.anchor(await self._store.now())
        await self._targets.start()
        self._log.info("the worker has started", shards=self._store.shards, loops=len(self._loops))
        beside = (self._heart, self._finisher, self._leases, self._collector)
        background = [asyncio.ensure_future(part.run()) for part in beside]
        loops = [asyncio.ensure_future(loop.run()) for loop in self._loops]
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait([stop, *background, *loops], return_when=asyncio.FIRST_COMPLETED)
            _raise_first([*background, *loops])
            await self._drain(loops)
        finally:
            await _cancel([stop, *loops, *background])
            await self._targets.close()
            self._log.info("the worker has stopped", **_numbers(self.tally))

    def stop(self) -> None:
        """Finish what runs, within the drain limit, and stop."""
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
            await self._give_up()
        await self._finisher.drained()
        # Whatever is left behind, others will find interrupted.
        self.tally.interrupted += self._pool.in_flight

    async def _give_up(self) -> None:
        """Cancelled attempts end at once, unless a handler does not let itself be cancelled."""
        try:
            async with asyncio.timeout(_CANCELLED_WITHIN_S):
                await self._pool.drained()
        except TimeoutError:
            self._log.error("attempts are left behind: their handlers go on", attempts=self._pool.in_flight)

    def _held(self) -> list[Shard]:
        return [loop.shard for loop in self._loops if loop.shard is not None]

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
    await asyncio.wait(parts)


def _numbers(tally: Tally) -> dict[str, int]:
    return {name: getattr(tally, name) for name in tally.__slots__ if getattr(tally, name)}
