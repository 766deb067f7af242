"""The shard locks."""

from collections.abc import Sequence

from clepsydra.store.port import Acquired, Heartbeat, Lock
from clepsydra.store.postgres.calls import Calls


async def acquire(calls: Calls, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
    answer = await calls.change("acquire", lock_guid, worker, now_us, stale_before_us)
    if not answer.rows:
        return None
    [(shard_id, store_now_us)] = answer.rows
    return Acquired(Lock(shard_id, lock_guid), store_now_us)


async def heartbeat(calls: Calls, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
    answer = await calls.change("heartbeat", *_columns(locks), now_us, stale_before_us)
    [(kept, waiting, store_now_us)] = answer.rows
    return Heartbeat(frozenset(lock.shard_id for lock in locks) - frozenset(kept), waiting, store_now_us)


async def release(calls: Calls, locks: Sequence[Lock], now_us: int) -> None:
    await calls.change("release", *_columns(locks), now_us)


def _columns(locks: Sequence[Lock]) -> tuple[list[int], list[str]]:
    """In the order of shards, in which everybody locks them."""
    in_order = sorted(locks)
    return [lock.shard_id for lock in in_order], [lock.guid for lock in in_order]
