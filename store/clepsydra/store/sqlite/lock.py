"""The shard locks."""

import json
from collections.abc import Sequence

import apsw

from clepsydra.core.clock import Clock
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.lock_age import fresh_until_us
from clepsydra.store.port import Acquired, Heartbeat, Lock
from clepsydra.store.sqlite.connection.connect import fetch, run, value
from clepsydra.store.sqlite.connection.errors import Busy
from clepsydra.store.sqlite.connection.thread import OperationRunner


class Locks:
    _clock: Clock
    _writer: OperationRunner
    _reader: OperationRunner

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        taking = {"guid": lock_guid, "worker": worker, "now": now_us, **_fresh(now_us, stale_before_us)}
        # Nearly always there is nothing to take, and reading that costs no sync of the disk.
        if not await self._reader.run(lambda connection: value(connection, "lock_is_available", taking)):
            return None
        taken = await self._writer.run(lambda connection: _acquire(connection, taking))
        if taken is None:
            return None
        shard_id, *taken_from = taken
        return Acquired(Lock(shard_id, lock_guid), self._clock.now_us(), *taken_from)

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        lost, waiting = await self._writer.run(
            lambda connection: _heartbeat(connection, locks, now_us, stale_before_us)
        )
        return Heartbeat(lost, waiting, self._clock.now_us())

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        released = {"now": now_us, "locks": json.dumps(locks)}
        await self._writer.run(lambda connection: run(connection, "release", released))

    async def check_writable(self) -> None:
        """While another process holds the write lock, wait for as long as a call may be retried."""
        until_us = self._clock.monotonic_us() + CALL_RETRY_US
        while True:
            try:
                return await self._writer.run(lambda connection: run(connection, "check_writable"))
            except Busy:
                # Each try has waited for the lock already.
                if self._clock.monotonic_us() >= until_us:
                    raise


def _acquire(connection: apsw.Connection, taking: dict[str, object]) -> tuple[int, str, str] | None:
    """The shard, the worker whose stale lock it was, and that lock's guid."""
    held: int | None = value(connection, "lock_with_guid", taking)
    if held is not None:
        return held, "", ""
    first: tuple[int, str, str] | None = value(connection, "first_available_lock", taking)
    if first is not None:
        run(connection, "acquire", {**taking, "shard_id": first[0]})
    return first


def _heartbeat(
    connection: apsw.Connection, locks: Sequence[Lock], now_us: int, stale_before_us: int
) -> tuple[frozenset[int], int]:
    """Which of the locks were lost, and how many shards wait for a worker."""
    fresh = _fresh(now_us, stale_before_us)
    keeping = {"now": now_us, "locks": json.dumps(locks), "fresh_until": fresh["fresh_until"]}
    kept = {shard_id for (shard_id,) in fetch(connection, "heartbeat", keeping)}
    waiting: int = value(connection, "waiting_shards", fresh)
    return frozenset(lock.shard_id for lock in locks if lock.shard_id not in kept), waiting


def _fresh(now_us: int, stale_before_us: int) -> dict[str, int]:
    """The earliest and the latest heartbeat of a lock that is not stale."""
    return {"stale_before": stale_before_us, "fresh_until": fresh_until_us(now_us, stale_before_us)}
