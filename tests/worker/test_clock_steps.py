"""The store's clock is set back: nobody waits until the old time has come again."""

from clepsydra.core.times import MINUTE_US, SECOND_US
from tests.worker.fleet import Fleet, on_virtual_time


@on_virtual_time
async def test_the_shards_of_a_dead_worker_are_taken_over_though_the_clock_was_set_back() -> None:
    fleet = Fleet()
    dead = fleet.add_worker()
    await fleet.until(lambda: all(lock.locked for lock in fleet.store.shard_locks.values()))
    dead.kill()
    fleet.clock.step(-MINUTE_US)
    fleet.add_worker()

    await fleet.create("a")

    await fleet.until(lambda: len(fleet.started) == 1, 15 * SECOND_US)


@on_virtual_time
async def test_a_live_worker_keeps_its_shards_when_the_clock_is_set_back() -> None:
    fleet = Fleet(shards=1)
    holder = fleet.add_worker()
    await fleet.until(lambda: fleet.store.shard_locks[0].locked)
    fleet.clock.step(-MINUTE_US)
    fleet.add_worker()

    for name in ("a", "b", "c"):
        await fleet.create(name)
        await fleet.until(lambda: len(fleet.started) == len(fleet.store.actions), 15 * SECOND_US)
    await fleet.until(lambda: holder.tally.succeeded + fleet.members[1].tally.succeeded == 3)
    await fleet.assert_sound()
