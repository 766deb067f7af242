"""The shard locks that a worker holds, and the heartbeat that keeps them.

A lock gives order and cheapness, not safety: the guard in the store gives safety. A lock counts as held only while the
last heartbeat that the store confirmed is younger than the lock's life.
"""

import asyncio
from collections import deque

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import DisciplinedClock
from clepsydra.core.times import MILLISECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Lock, Store
from clepsydra.store.store_clock import read_store_clock
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally

# More than one installation's workers can die within a lease.
_TAKEN = 1024


class HeldLock:
    """A shard lock, as far as this worker knows."""

    __slots__ = ("lock", "valid_until_us")

    def __init__(self, lock: Lock, valid_until_us: int) -> None:
        self.lock = lock
        self.valid_until_us = valid_until_us

    @property
    def shard_id(self) -> int:
        return self.lock.shard_id

    def is_held(self, now_us: int) -> bool:
        return now_us < self.valid_until_us

    def lose(self) -> None:
        self.valid_until_us = 0


class ShardLocks:
    """All locks of one worker. One heartbeat, which is one write, keeps them all."""

    def __init__(
        self,
        store: Store,
        clock: DisciplinedClock,
        settings: WorkerSettings,
        name: str,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._store = store
        self._clock = clock
        self._life_us = settings.lock_life_ms * MILLISECOND_US
        self._interval_s = settings.heartbeat_ms / 1000
        self._name = name
        self._tally = tally
        self._log = log
        self._held: dict[int, HeldLock] = {}
        # Workers whose locks were taken over, each with the guid of the lock.
        self.taken: deque[tuple[str, str]] = deque(maxlen=_TAKEN)
        # How many shards waited for a worker at the last heartbeat.
        self.waiting = 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self._heartbeat()
                # Ask for the store's time alone as well: a write delays the answer by a commit.
                await read_store_clock(self._store, self._clock)
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                self._log.warning("the shard locks could not be kept", error=str(error), shards=sorted(self._held))

    async def acquire(self, sync_guid: str) -> HeldLock | None:
        """Take the free or stale lock that waited longest."""
        now_us, asked_us = self._clock.now_us(), self._clock.monotonic_us()
        acquired = await self._store.acquire(sync_guid, self._name, now_us, now_us - self._life_us)
        if acquired is None:
            self.waiting = 0
            return None
        self._clock.anchor(acquired.now_us, asked_us)
        held = HeldLock(acquired.lock, now_us + self._life_us)
        self._held[held.shard_id] = held
        if acquired.taken_from:
            self.taken.append((acquired.taken_from, acquired.taken_guid))
            self._log.info("a shard was taken over", shard=held.shard_id, taken_from=acquired.taken_from)
        return held

    async def release(self, held: HeldLock) -> None:
        if self._held.get(held.shard_id) is held:
            del self._held[held.shard_id]
        held.lose()
        try:
            await self._store.release([held.lock], self._clock.now_us())
        except (Unavailable, OutcomeUnknown) as error:
            # Another worker takes it over when its heartbeat has become too old.
            self._tally.store_failures += 1
            self._log.warning("a shard lock could not be released", shard=held.shard_id, error=str(error))

    async def _heartbeat(self) -> None:
        locks = [held.lock for held in self._held.values()]
        now_us, asked_us = self._clock.now_us(), self._clock.monotonic_us()
        heartbeat = await self._store.heartbeat(locks, now_us, now_us - self._life_us)
        self._clock.anchor(heartbeat.now_us, asked_us)
        self.waiting = heartbeat.waiting
        for lock in locks:
            held = self._held.get(lock.shard_id)
            if held is None or held.lock != lock:
                continue
            if lock.shard_id in heartbeat.lost:
                self._log.warning("a shard lock was taken over", shard=lock.shard_id)
                held.lose()
            else:
                held.valid_until_us = now_us + self._life_us
