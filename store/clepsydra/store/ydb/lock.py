"""Shard locks. A snapshot shows which locks are free; a lock is then written by its key, if it is still as seen."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.lock_age import fresh_until_us
from clepsydra.store.port import Acquired, Heartbeat, Lock
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import ROWS_MAX
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.retry import Retry

# After this many reads whose free locks were all taken by others first, leave the locks to the others.
_READS_MAX = 100


class _SeenLock(NamedTuple):
    """A lock in a snapshot: it is free or stale, or it has the guid that was asked for."""

    shard_id: int
    locked: bool
    guid: str
    processing_start_at_us: int
    heartbeat_at_us: int
    locked_by: str

    def is_free(self, now_us: int, stale_before_us: int) -> bool:
        return not self.locked or not _is_fresh(self.heartbeat_at_us, now_us, stale_before_us)


class Locks:
    _sessions: Sessions
    _retry: Retry

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        for _ in range(_READS_MAX):
            seen, store_now_us = await self._free_locks(lock_guid, now_us, stale_before_us)
            for lock in seen:
                if lock.locked and lock.guid == lock_guid:
                    return Acquired(Lock(lock.shard_id, lock_guid), store_now_us)
            free = [lock for lock in seen if lock.is_free(now_us, stale_before_us)]
            if not free:
                return None
            # If another worker has taken the first one meanwhile, the next one may still be free.
            for lock in sorted(free, key=lambda lock: (lock.processing_start_at_us, lock.shard_id)):
                acquired = await self._take(lock, lock_guid, worker, now_us)
                if acquired is not None:
                    return acquired
        return None

    async def _take(self, lock: _SeenLock, lock_guid: str, worker: str, now_us: int) -> Acquired | None:
        sent = {
            "$shard_id": parameters.number(lock.shard_id),
            "$seen_locked": parameters.flag(lock.locked),
            "$seen_guid": parameters.text(lock.guid),
            "$seen_heartbeat_at": parameters.time(lock.heartbeat_at_us),
            "$guid": parameters.text(lock_guid),
            "$worker": parameters.text(worker),
            "$now": parameters.time(now_us),
        }
        results = await self._retry.call(lambda: self._sessions.write("acquire", sent))
        for row in results.rows():
            if row["acquired"]:
                taken = (lock.locked_by, lock.guid) if lock.locked else ("", "")
                return Acquired(Lock(lock.shard_id, lock_guid), row["store_now"], *taken)
        return None

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        # Waiting shards are read beside the write, not in it: a range in a writing transaction would be aborted by
        # every other heartbeat.
        kept, free = await asyncio.gather(
            self._keep(locks, now_us, stale_before_us),
            self._free_locks("", now_us, stale_before_us),
            return_exceptions=True,
        )
        if isinstance(kept, BaseException):
            raise kept
        if isinstance(free, BaseException):
            raise free
        others, store_now_us = free
        waiting = sum(lock.is_free(now_us, stale_before_us) for lock in others if lock.shard_id not in kept)
        waiting += sum(not _is_fresh(heartbeat_at_us, now_us, stale_before_us) for heartbeat_at_us in kept.values())
        lost = frozenset(lock.shard_id for lock in locks if lock.shard_id not in kept)
        return Heartbeat(lost, waiting, store_now_us)

    async def _keep(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> dict[int, int]:
        """The shards whose locks this worker still holds, each with its heartbeat."""
        kept: dict[int, int] = {}
        for start in range(0, len(locks), ROWS_MAX):
            held = parameters.held_locks(locks[start : start + ROWS_MAX])
            fresh_until = parameters.time(fresh_until_us(now_us, stale_before_us))
            sent = {"$locks": held, "$now": parameters.time(now_us), "$fresh_until": fresh_until}
            results = await self._retry.call(partial(self._sessions.write, "heartbeat", sent))
            kept |= {row["shard_id"]: row["last_heartbeat_at"] for row in results.rows()}
        return kept

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        if locks:
            sent = {
                "$locks": parameters.held_locks(locks),
                "$now": parameters.time(now_us),
                "$fresh_until": parameters.time(END_OF_TIME_US),
            }
            await self._retry.call(lambda: self._sessions.write("release", sent))

    async def _free_locks(self, guid: str, now_us: int, stale_before_us: int) -> tuple[list[_SeenLock], int]:
        """Every lock that is free, stale or held under this guid; and the store's time."""
        sent = {
            "$guid": parameters.text(guid),
            "$stale_before": parameters.time(max(0, stale_before_us)),
            "$fresh_until": parameters.time(fresh_until_us(now_us, stale_before_us)),
            "$from_shard": parameters.number(0),
        }
        results = await self._retry.call(lambda: self._sessions.read("free_locks", sent))
        seen = [
            _SeenLock(
                row["shard_id"],
                row["locked"],
                row["last_lock_guid"],
                row["last_processing_start_at"],
                row["last_heartbeat_at"],
                row["last_locked_by"] or "",
            )
            for row in results.rows(0)
        ]
        return seen, results.rows(1)[0]["store_now"]


def _is_fresh(heartbeat_at_us: int, now_us: int, stale_before_us: int) -> bool:
    return stale_before_us <= heartbeat_at_us <= fresh_until_us(now_us, stale_before_us)
