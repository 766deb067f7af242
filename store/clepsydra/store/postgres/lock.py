"""The shard locks."""

from collections.abc import Sequence

from clepsydra.store.lock_age import fresh_until_us
from clepsydra.store.port import Acquired, Heartbeat, Lock
from clepsydra.store.postgres.calls import Calls


class Locks:
    _calls: Calls

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        taken = await self._calls.write(
            "acquire", lock_guid, worker, now_us, stale_before_us, fresh_until_us(now_us, stale_before_us)
        )
        if not taken:
            return None
        [(shard_id, store_now_us, *taken_from)] = taken
        return Acquired(Lock(shard_id, lock_guid), store_now_us, *taken_from)

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        found = await self._calls.write(
            "heartbeat", *_arrays(locks), now_us, stale_before_us, fresh_until_us(now_us, stale_before_us)
        )
        [(kept, waiting, store_now_us)] = found
        return Heartbeat(frozenset(lock.shard_id for lock in locks) - frozenset(kept), waiting, store_now_us)

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await self._calls.write("release", *_arrays(locks), now_us)

    async def check_writable(self) -> None:
        await self._calls.write("check_writable")


def _arrays(locks: Sequence[Lock]) -> tuple[list[int], list[str]]:
    """In the order of shards, in which every statement locks them."""
    in_order = sorted(locks)
    return [lock.shard_id for lock in in_order], [lock.guid for lock in in_order]
