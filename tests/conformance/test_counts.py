"""The figures that operators see: of the whole installation, and of each shard and its lock."""

from clepsydra.core.state_bytes import state_bytes
from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.port import Action, Advance, Load, LockInfo, Put, Stats
from clepsydra.v1 import action_pb2
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
    assert await world.store.stats(world.now_us) == Stats(
        4, 3, 2, 3, world.at(-7), world.store.shards, 1, Load(kept=4), states=((0, 4),)
    )
    assert (await world.other.stats(world.at(50))).due_rows == 5


async def test_locks_show_the_holder_and_the_load_of_each_shard(world: World) -> None:
    await line_up(world.store, world.now_us, world.ids)
    await world.waiting("a", world.at(5), shard_id=0)
    await world.waiting("b", world.at(9), shard_id=0)
    await world.carry_out(world.create("c", world.at(3)), world.create("d", world.at(7), shard_id=1))
    await acquire(world.store, "lock", world.at(1))
    first, second, third, _ = await world.other.locks()
    assert first == LockInfo(0, True, "lock", "worker", world.at(1), world.at(1), 1, 2, world.at(3), Load(kept=3))
    assert (second.locked, second.incoming_rows, second.processing_rows) == (False, 1, 0)
    assert (second.earliest_us, third.earliest_us) == (world.at(7), None)


async def stored_in(world: World, state: int, at_us: int, *, shard_id: int = 0) -> Action:
    """A new action in this state, with its row in incoming_queue."""
    status = state_bytes(state) + b" and the rest of a status"
    life = world.life(f"{action_pb2.State.Name(state)}-{at_us}", at_us, status=status)
    [action] = await world.carry_out(Put(None, life, shard_id, world.tick()))
    return action


async def running_in(world: World, at_us: int) -> None:
    """An action that is planned for this time, whose attempt has begun."""
    action = await stored_in(world, action_pb2.SCHEDULED, at_us)
    await world.advance(Advance(await world.row_of(action.action_id), world.at(100)))


async def test_what_waits_what_runs_and_what_is_only_kept_are_told_apart(world: World) -> None:
    await stored_in(world, action_pb2.SCHEDULED, world.at(7))
    await stored_in(world, action_pb2.RETRYING, world.at(-4))
    waiting = await stored_in(world, action_pb2.SCHEDULED, world.at(30), shard_id=2)
    await world.migrate(await world.row_of(waiting.action_id))
    await running_in(world, world.at(-9))
    await stored_in(world, action_pb2.PAUSED, END_OF_TIME_US)
    await stored_in(world, action_pb2.SUCCEEDED, world.at(-50))
    deleted = await stored_in(world, action_pb2.DELETED, world.at(-60), shard_id=2)
    # A row with an old guid stands for nothing.
    await world.carry_out(world.change(deleted, world.at(-70), shard_id=3, status=deleted.status))

    stats = await world.other.stats(world.now_us)
    assert stats.load == Load(waiting=3, running=1, kept=3, next_us=world.at(-4))
    assert stats.due_waiting == 1
    assert stats.states == (
        (action_pb2.SCHEDULED, 3),
        (action_pb2.RETRYING, 1),
        (action_pb2.PAUSED, 1),
        (action_pb2.SUCCEEDED, 1),
        (action_pb2.DELETED, 1),
    )
    assert (stats.actions, stats.earliest_us) == (7, world.at(-70))
    assert [lock.load for lock in await world.other.locks()] == [
        Load(waiting=2, running=1, kept=2, next_us=world.at(-4)),
        Load(),
        Load(waiting=1, next_us=world.at(30)),
        Load(kept=1),
    ]
    audit = await world.other.audit(10)
    assert (audit.actions, audit.deleted, audit.live_rows) == (7, 1, 7)


async def test_a_status_that_tells_no_state_is_counted_as_such(world: World) -> None:
    for number, status in enumerate((b"", b"\x08", b"\x08\x81\x01", b"\x12\x01", b"\xff")):
        await world.carry_out(Put(None, world.life(f"a{number}", status=status), 0, world.tick()))

    stats = await world.store.stats(world.now_us)

    assert stats.states == ((0, 5),)
    assert stats.load == Load(kept=5)
