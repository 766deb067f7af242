"""Where an action's live row is, who holds its shard, and which version an action has."""

from clepsydra.store.port import Inspected, Inspection, LiveRow, LockRow, Queue, Version
from tests.conformance.worlds import World, acquire, begin, finish, incoming_row, key, line_up


async def test_a_row_that_came_in_is_found(world: World) -> None:
    put = world.create("a", world.at(30), shard_id=2)
    [action] = await world.carry_out(put)
    found = await world.other.inspect("a", world.at(600))
    assert found.actions == [Inspected(action, LiveRow(incoming_row(put), put.created_at_us))]
    assert [lock.shard_id for lock in found.locks] == list(range(world.store.shards))
    assert (await world.store.running(["a"], world.now_us, world.at(600))).actions == [Inspected(action, None)]


async def test_a_row_that_waits_is_found_at_its_time_with_its_provenance(world: World) -> None:
    put = world.create("a", world.at(30), shard_id=3)
    [action] = await world.carry_out(put)
    mark = world.mark()
    assert await world.store.migrate([incoming_row(put)], mark) == 1
    [[seen, live]] = (await world.store.inspect("a", world.at(600))).actions
    assert seen == action
    assert live is not None
    assert key(live.row) == ("processing_queue", 3, world.at(30), "a", action.guid)
    assert live[1:] == (put.created_at_us, mark.sync_guid, mark.at_us, None)
    assert live.row.rescheduled_at_us is None


async def test_a_row_that_waits_for_longer_than_any_attempt_is_found_too(world: World) -> None:
    _, row = await world.waiting("a", world.at(86_400))
    [[_, live]] = (await world.store.inspect("a", world.at(600))).actions
    assert live is not None
    assert live.row == row


async def test_the_row_of_an_attempt_is_found_where_its_lease_ends(world: World) -> None:
    action, row = await world.waiting("a", world.at(-5), shard_id=1)
    other, _ = await world.waiting("b", world.at(-4), shard_id=1)
    mark = world.mark()
    await world.store.advance([begin(row)], mark)
    both = await world.store.running(["b", "nothing", "a"], world.now_us, world.at(600))
    waiting, nothing, attempt = both.actions
    # A row at its planned time is no attempt.
    assert (waiting, nothing) == (Inspected(other, None), Inspected(None, None))
    assert attempt.action == action
    assert attempt.live is not None
    assert attempt.live.row == await world.row_of("a")
    assert (attempt.live.rescheduled_by, attempt.live.row.rescheduled_at_us) == mark
    assert (await world.other.inspect("a", world.at(600))).actions == [attempt]


async def test_the_bounds_of_the_search_are_kept(world: World) -> None:
    action, row = await world.in_flight("a", world.at(-5))
    assert row.at_us == world.at(25)
    for after_us, until_us, is_found in (
        (row.at_us - 1, row.at_us, True),
        (row.at_us, world.at(600), False),
        (world.now_us, row.at_us - 1, False),
    ):
        [[seen, live]] = (await world.store.running(["a"], after_us, until_us)).actions
        assert (seen, live is not None) == (action, is_found)
    assert (await world.store.inspect("a", row.at_us - 1)).actions == [Inspected(action, None)]


async def test_rows_of_earlier_lives_are_not_found(world: World) -> None:
    old, _ = await world.in_flight("a", world.at(-5))
    put = world.change(old, world.at(3), shard_id=0)
    [new] = await world.carry_out(put)
    [[seen, live]] = (await world.store.inspect("a", world.at(600))).actions
    assert seen == new
    assert live is not None
    assert (live.row.queue, live.row.guid) == (Queue.INCOMING, new.guid)
    assert (await world.store.running(["a"], world.now_us, world.at(600))).actions == [Inspected(new, None)]


async def test_an_action_that_does_not_exist(world: World) -> None:
    found = await world.store.inspect("a", world.at(600))
    assert found.actions == [Inspected(None, None)]
    assert isinstance(found, Inspection)
    assert abs(found.now_us - world.now_us) < 600_000_000


async def test_the_locks_are_in_the_same_snapshot(world: World) -> None:
    await line_up(world.store, world.now_us, world.ids)
    await acquire(world.store, "lock", world.at(1))
    await world.waiting("a")
    for found in (await world.other.inspect("a", world.at(600)), await world.other.running(["a"], 0, world.at(600))):
        assert found.locks[0] == LockRow(0, True, "lock", "worker", world.at(1), world.at(1))
        assert not found.locks[1].locked


async def test_a_version_changes_with_every_life_and_every_status(world: World) -> None:
    action, row = await world.in_flight("a", world.at(-5))
    first = Version(action.guid, action.scheduled_at_us)
    assert await world.store.versions(["a", "nothing", "a"]) == [first, None, first]
    assert await world.store.versions([]) == []
    await world.advance(finish(row, action, world.at(90)))
    assert await world.other.versions(["a"]) == [Version(action.guid, world.at(90))]
    [new] = await world.carry_out(world.change(await world.current("a"), world.at(10)))
    assert await world.store.versions(["a"]) == [Version(new.guid, world.at(10))]
