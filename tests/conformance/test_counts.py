"""The figures that operators see: of the whole installation, and of each shard and its lock."""

from clepsydra.store.port import LockInfo, Stats
from tests.conformance.worlds import World, acquire, line_up


async def test_a_fresh_installation_counts_nothing(world: World) -> None:
    shards = world.store.shards
    assert shards == world.other.shards == 4
    assert await world.store.stats(world.now_us) == Stats(0, 0, 0, 0, None, shards, 0)
    assert await world.store.locks() == [LockInfo(n, False, "", "", 0, 0, 0, 0, None) for n in range(shards)]


async def test_stats_count_actions_rows_and_what_is_due(world: World) -> None:
    await world.waiting("due", world.at(-5))
    old, _ = await world.waiting("changed", world.at(0))
    await world.carry_out(world.create("came in due", world.at(-7)), world.create("came in", world.at(1)))
    await world.carry_out(world.change(old, world.at(50)))
    await acquire(world.store, "lock", world.now_us)
    # A row with an old guid is a row like any other here: only the audit looks at guids.
    assert await world.store.stats(world.now_us) == Stats(4, 3, 2, 3, world.at(-7), world.store.shards, 1)
    assert (await world.other.stats(world.at(50))).due_rows == 5


async def test_locks_show_the_holder_and_the_load_of_each_shard(world: World) -> None:
    await line_up(world.store, world.now_us, world.ids)
    await world.waiting("a", world.at(5), shard_id=0)
    await world.waiting("b", world.at(9), shard_id=0)
    await world.carry_out(world.create("c", world.at(3)), world.create("d", world.at(7), shard_id=1))
    await acquire(world.store, "lock", world.at(1))
    first, second, third, _ = await world.other.locks()
    assert first == LockInfo(0, True, "lock", "worker", world.at(1), world.at(1), 1, 2, world.at(3))
    assert (second.locked, second.incoming_rows, second.processing_rows) == (False, 1, 0)
    assert (second.earliest_us, third.earliest_us) == (world.at(7), None)
