"""A shard lock has one holder, goes to the shard that waited longest, and is kept and given back by its guid alone."""

import asyncio

from clepsydra.core.times import SECOND_US
from clepsydra.store.port import Lock, LockInfo
from tests.conformance.worlds import World, acquire, line_up

# A lock of an earlier heartbeat than this, in seconds after now, is stale in the tests below.
STALE_S = 100


async def take_all(world: World) -> list[Lock]:
    """Hold every lock, in the order of the shards, each since a second after the one before."""
    await line_up(world.store, world.now_us, world.ids)
    locks = [await acquire(world.store, f"lock-{n}", world.at(1 + n)) for n in range(world.store.shards)]
    return [lock for lock in locks if lock is not None]


async def lock_of(world: World, shard_id: int) -> LockInfo:
    return (await world.store.locks())[shard_id]


async def test_every_shard_can_be_locked_once_and_then_there_is_none(world: World) -> None:
    locks = [await acquire(world.store, f"lock-{n}", world.now_us) for n in range(world.store.shards)]
    assert sorted(lock.shard_id for lock in locks if lock) == list(range(world.store.shards))
    assert await acquire(world.other, "one more", world.now_us) is None


async def test_acquire_tells_the_stores_time(world: World) -> None:
    acquired = await world.store.acquire("lock", "worker", world.at(-50), 0)
    assert acquired is not None
    assert world.now_us <= acquired.now_us <= await world.store.now()


async def test_the_lock_that_waited_longest_goes_first(world: World) -> None:
    await line_up(world.store, world.now_us, world.ids)
    order = []
    for n in range(2 * world.store.shards):
        lock = await acquire(world.store, f"lock-{n}", world.at(1 + n))
        assert lock is not None
        order.append(lock.shard_id)
        await world.store.release([lock], world.at(1 + n))
    assert order == [*range(world.store.shards)] * 2


async def test_waiting_counts_from_the_start_of_the_last_processing_not_from_the_release(world: World) -> None:
    locks = await take_all(world)
    for n, shard_id in enumerate((3, 1, 2, 0)):
        await world.store.release([locks[shard_id]], world.at(20 + n))
    again = [await acquire(world.store, f"again-{n}", world.at(30 + n)) for n in range(2)]
    assert [lock.shard_id for lock in again if lock] == [0, 1]


async def test_a_held_lock_is_taken_only_when_its_heartbeat_is_too_old(world: World) -> None:
    await take_all(world)
    # Lock 0 was last heard of at second 1, lock 1 at second 2.
    assert await acquire(world.other, "thief", world.at(50), stale_before_us=world.at(1)) is None
    stolen = await acquire(world.other, "thief", world.at(50), stale_before_us=world.at(2))
    assert stolen == Lock(0, "thief")
    assert await acquire(world.other, "second thief", world.at(51), stale_before_us=world.at(2)) is None


async def test_an_acquire_tells_whose_stale_lock_it_was(world: World) -> None:
    acquired = await world.store.acquire("first", "worker-a", world.at(1), 0)
    assert acquired is not None
    assert (acquired.taken_from, acquired.taken_guid) == ("", "")
    shard_id = acquired.lock.shard_id
    line_up_others = [await world.store.acquire(f"other-{n}", "b", world.at(40), 0) for n in range(world.store.shards)]
    assert line_up_others[-1] is None
    stolen = await world.other.acquire("thief", "worker-b", world.at(50), world.at(2))
    assert stolen is not None
    assert (stolen.lock, stolen.taken_from, stolen.taken_guid) == (Lock(shard_id, "thief"), "worker-a", "first")
    await world.other.release([stolen.lock], world.at(51))
    free = await world.store.acquire("third", "worker-a", world.at(52), world.at(2))
    assert free is not None
    assert (free.lock, free.taken_from, free.taken_guid) == (Lock(shard_id, "third"), "", "")


async def test_a_heartbeat_from_the_future_is_stale(world: World) -> None:
    """The clock was set back by a minute after the holders of these locks had died."""
    await take_all(world)
    now_us = world.at(-56)
    # Heartbeats may be ten seconds old, and clocks err by less: those of seconds 1 to 4 are a minute ahead.
    assert await acquire(world.other, "thief", now_us, stale_before_us=now_us - 10 * SECOND_US) == Lock(0, "thief")
    assert (await lock_of(world, 0)).heartbeat_at_us == now_us
    beat = await world.store.heartbeat([], now_us, now_us - 10 * SECOND_US)
    assert beat.waiting == world.store.shards - 1


async def test_a_heartbeat_that_is_a_little_ahead_is_not_stale(world: World) -> None:
    await take_all(world)
    now_us = world.at(-5)
    assert await acquire(world.other, "thief", now_us, stale_before_us=now_us - 10 * SECOND_US) is None
    assert (await world.store.heartbeat([], now_us, now_us - 10 * SECOND_US)).waiting == 0


async def test_a_live_holder_keeps_its_lock_when_the_clock_is_set_back(world: World) -> None:
    lock = (await take_all(world))[0]
    now_us = world.at(-60)
    stale_before_us = now_us - 10 * SECOND_US
    beat = await world.store.heartbeat([lock], now_us, stale_before_us)
    assert (beat.lost, beat.waiting) == (frozenset(), world.store.shards - 1)
    assert (await lock_of(world, 0)).heartbeat_at_us == now_us
    stolen = await acquire(world.other, "thief", now_us, stale_before_us=stale_before_us)
    assert stolen == Lock(1, "thief")


async def test_a_free_lock_and_a_stale_one_wait_in_one_line(world: World) -> None:
    locks = await take_all(world)
    await world.store.release([locks[2]], world.at(20))
    assert await acquire(world.store, "first", world.at(50), stale_before_us=world.at(2)) == Lock(0, "first")
    assert await acquire(world.store, "then", world.at(51), stale_before_us=world.at(2)) == Lock(2, "then")


async def test_an_acquire_replayed_gives_the_same_lock_again(world: World) -> None:
    lock = await acquire(world.store, "lock", world.now_us)
    assert lock is not None
    held = await lock_of(world, lock.shard_id)
    assert await acquire(world.store, "lock", world.now_us) == lock
    assert await acquire(world.other, "lock", world.at(9), stale_before_us=world.at(STALE_S)) == lock
    assert await lock_of(world, lock.shard_id) == held
    assert (await world.store.stats(world.now_us)).locked_shards == 1


async def test_a_guid_whose_lock_was_given_back_holds_nothing_until_it_acquires_anew(world: World) -> None:
    for n in range(2):
        lock = await acquire(world.store, "lock", world.at(n))
        assert lock is not None
        assert (await lock_of(world, lock.shard_id)).locked
        await world.store.release([lock], world.at(n))


async def test_a_heartbeat_keeps_the_lock(world: World) -> None:
    lock = (await take_all(world))[0]
    beat = await world.store.heartbeat([lock], world.at(STALE_S), 0)
    assert (beat.lost, beat.waiting) == (frozenset(), 0)
    assert world.now_us <= beat.now_us <= await world.store.now()
    assert (await lock_of(world, 0)).heartbeat_at_us == world.at(STALE_S)
    taken = await acquire(world.other, "thief", world.at(STALE_S), stale_before_us=world.at(STALE_S))
    assert taken is not None
    assert taken.shard_id != lock.shard_id


async def test_a_heartbeat_never_goes_back_in_time(world: World) -> None:
    lock = (await take_all(world))[0]
    await world.store.heartbeat([lock], world.at(50), 0)
    late = await world.store.heartbeat([lock], world.at(10), 0)
    assert late.lost == frozenset()
    assert (await lock_of(world, 0)).heartbeat_at_us == world.at(50)
    await world.store.release([lock], world.at(20))
    assert (await lock_of(world, 0)).heartbeat_at_us == world.at(50)


async def test_a_heartbeat_needs_the_own_guid_and_a_held_lock(world: World) -> None:
    kept, stolen, released, _ = locks = await take_all(world)
    await world.store.heartbeat([kept], world.at(50), 0)
    await world.store.release([released], world.at(20))
    assert await acquire(world.other, "thief", world.at(60), stale_before_us=world.at(3)) == Lock(1, "thief")
    before = await world.store.locks()
    beat = await world.store.heartbeat([stolen, released, Lock(3, "never was"), kept], world.at(70), 0)
    assert beat.lost == {stolen.shard_id, released.shard_id, 3}
    after = await world.store.locks()
    assert after[1:] == before[1:]
    assert after[0] == before[0]._replace(heartbeat_at_us=world.at(70))
    assert len(locks) == world.store.shards


async def test_a_heartbeat_counts_the_shards_that_wait_for_a_worker(world: World) -> None:
    locks = await take_all(world)
    assert (await world.store.heartbeat([], world.at(50), 0)).waiting == 0
    # Its own shards do not wait, however old their heartbeat was.
    assert (await world.store.heartbeat(locks[:2], world.at(50), world.at(50))).waiting == 2
    await world.store.release([locks[0]], world.at(51))
    assert (await world.store.heartbeat([locks[1]], world.at(51), world.at(4))).waiting == 2


async def test_release_makes_the_lock_free_and_remembers_who_had_it(world: World) -> None:
    lock = (await take_all(world))[1]
    await world.store.release([lock], world.at(9))
    assert await lock_of(world, 1) == LockInfo(1, False, "lock-1", "worker", world.at(2), world.at(9), 0, 0, None)
    await world.store.release([lock], world.at(10))
    assert (await lock_of(world, 1)).heartbeat_at_us == world.at(9)
    assert await acquire(world.other, "next", world.at(11)) == Lock(1, "next")


async def test_a_release_of_a_lock_that_was_taken_over_does_nothing(world: World) -> None:
    lost = (await take_all(world))[0]
    assert await acquire(world.other, "thief", world.at(50), stale_before_us=world.at(2)) == Lock(0, "thief")
    before = await world.store.locks()
    await world.store.release([lost, Lock(1, "never was")], world.at(60))
    assert await world.store.locks() == before


async def test_callers_that_race_never_get_the_same_lock(world: World) -> None:
    handles = [world.store, world.other]
    for round_ in range(5):
        now_us = world.at(round_)
        got = await asyncio.gather(*(acquire(handles[n % 2], f"{round_}-{n}", now_us) for n in range(20)))
        locks = [lock for lock in got if lock is not None]
        assert sorted(lock.shard_id for lock in locks) == list(range(world.store.shards))
        await asyncio.gather(*(handles[n % 2].release([lock], now_us) for n, lock in enumerate(locks)))


async def test_thieves_that_race_for_stale_locks_never_get_the_same_one(world: World) -> None:
    await take_all(world)
    now_us = world.at(STALE_S)
    handles = [world.store, world.other]
    got = await asyncio.gather(
        *(acquire(handles[n % 2], f"thief-{n}", now_us, stale_before_us=now_us - SECOND_US) for n in range(20))
    )
    assert sorted(lock.shard_id for lock in got if lock) == list(range(world.store.shards))
