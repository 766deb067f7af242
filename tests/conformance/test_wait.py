"""A wake-up ends a wait for a shard. Only these tests wait in real time."""

import asyncio

from tests.conformance.backends import Backend
from tests.conformance.worlds import World

SHORT_S = 0.05
# Never waited out, unless a wake-up was lost.
LONG_S = 10


async def use_up_wakeups(world: World, shard_id: int) -> None:
    for store in (world.store, world.other):
        await store.wait(shard_id, SHORT_S)


async def test_a_wait_for_a_quiet_shard_ends_at_its_timeout(world: World) -> None:
    await use_up_wakeups(world, 0)
    assert not await world.store.wait(0, SHORT_S)


async def test_a_put_wakes_who_waits_for_its_shard(world: World) -> None:
    await use_up_wakeups(world, 2)
    waiting = asyncio.create_task(world.store.wait(2, LONG_S))
    await asyncio.sleep(0)
    assert not waiting.done()
    await world.carry_out(world.create("a", shard_id=2))
    assert await waiting


async def test_a_batch_wakes_who_waits_for_any_of_its_shards(world: World) -> None:
    for shard_id in range(world.store.shards):
        await use_up_wakeups(world, shard_id)
    waiting = [asyncio.create_task(world.store.wait(shard_id, LONG_S)) for shard_id in range(world.store.shards)]
    await asyncio.sleep(0)
    await world.carry_out(*(world.create(f"a{n}", shard_id=n) for n in range(world.store.shards)))
    assert all(await asyncio.gather(*waiting))


async def test_a_wakeup_before_the_wait_is_not_lost_and_is_used_up_by_it(world: World) -> None:
    await use_up_wakeups(world, 1)
    await world.carry_out(world.create("a", shard_id=1))
    assert await world.store.wait(1, LONG_S)
    assert not await world.store.wait(1, SHORT_S)


async def test_a_put_wakes_another_handle_where_the_store_says_so(world: World, backend: Backend) -> None:
    await use_up_wakeups(world, 3)
    reaches = backend.wakeups_reach_other_handles
    waiting = asyncio.create_task(world.other.wait(3, LONG_S if reaches else SHORT_S))
    await asyncio.sleep(0)
    await world.carry_out(world.create("a", shard_id=3))
    assert await waiting is reaches
