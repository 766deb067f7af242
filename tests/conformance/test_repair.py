"""A repair gives every action one live row again, removes the rows that no action needs, and leaves the rest alone."""

import asyncio
from contextlib import aclosing

import pytest

from clepsydra.core.action.occurrence import attempt_number, idempotency_key
from clepsydra.core.times import timestamp, us_of
from clepsydra.store.port import Action, Put, Queue
from clepsydra.store.repair import Plan, Repaired, plan_repair, repair
from clepsydra.v1.action_pb2 import SCHEDULED, Counters, Meta, Status
from tests.conformance.damages import double_row, lose_row, stray
from tests.conformance.worlds import EVERYTHING, World, begin, finish

STRAY_SHARD = 9


async def repaired(world: World, slice_size: int = 3) -> Repaired:
    """Repair to the end, and tell the sum of it."""
    total = Repaired()
    async with aclosing(repair(world.store, world.ids, slice_size)) as slices:
        async for done in slices:
            assert done.actions + done.changed <= slice_size
            total = total.plus(done)
    return total


async def break_all(world: World) -> None:
    """Twelve actions in both queues: four whole, four without a row, four with two; and old rows everywhere."""
    actions = [(await world.waiting(f"p{n}", world.at(n), shard_id=n % 4))[0] for n in range(6)]
    actions += await world.carry_out(*(world.create(f"i{n}", world.at(n), shard_id=n % 4) for n in range(6)))
    for action in actions:
        if action.action_id[1] in "01":
            await lose_row(world, action.action_id)
        elif action.action_id[1] in "23":
            await double_row(world, action)
    [gone] = await world.carry_out(world.create("gone", shard_id=3))
    await world.carry_out(world.change(gone, shard_id=0))
    await world.remove("gone")


async def test_a_repair_does_what_the_plan_said_and_nothing_else(world: World) -> None:
    await break_all(world)
    whole = {name: (await world.current(name), await world.row_of(name)) for name in ("p4", "p5", "i4", "i5")}
    audit = await world.audit()
    assert plan_repair(audit) == Plan(actions=8, rows=audit.stale_rows + 8)

    done = await repaired(world)

    assert (done.actions, done.changed, done.rows) == (8, 0, audit.stale_rows + 8)
    await world.assert_sound(actions=12)
    for name, found in whole.items():
        assert (await world.current(name), await world.row_of(name)) == found


async def test_looking_at_what_a_repair_would_do_changes_nothing(world: World) -> None:
    await break_all(world)
    async with world.unchanged():
        plan_repair(await world.audit())


async def test_a_repaired_action_goes_on_where_it_was(world: World) -> None:
    meta = Meta(id="a", guid=world.ids.guid(), labels={"user": "42"})
    status = Status(state=SCHEDULED, scheduled_time=timestamp(world.at(60)), counters=Counters(failed_attempts=3))
    action = Action("a", meta.guid, meta.SerializeToString(), b"spec", status.SerializeToString(), world.at(60))
    await world.carry_out(Put(None, action, 0, world.tick()))
    await lose_row(world, "a")

    await repaired(world)

    current, row = await world.current("a"), await world.row_of("a")
    assert (row.queue, row.guid, row.scheduled_at_us) == (Queue.INCOMING, current.guid, world.at(60))
    assert (current.spec, current.scheduled_at_us) == (b"spec", world.at(60))
    assert Meta.FromString(current.meta) == Meta(id="a", guid=current.guid, labels={"user": "42"})
    assert current.guid != action.guid
    after = Status.FromString(current.status)
    assert us_of(after.removable_time) > world.now_us
    after.ClearField("removable_time")
    # The work goes on under the key that it had.
    assert idempotency_key(after, current.guid) == idempotency_key(status, action.guid)
    after.ClearField("occurrence")
    assert after == status


async def test_a_repair_counts_an_attempt_that_may_run(world: World) -> None:
    meta = Meta(id="a", guid=world.ids.guid())
    status = Status(state=SCHEDULED, scheduled_time=timestamp(world.now_us), occurrence_time=timestamp(world.now_us))
    action = Action("a", meta.guid, meta.SerializeToString(), b"spec", status.SerializeToString(), world.now_us)
    await world.carry_out(Put(None, action, 0, world.tick()))
    await lose_row(world, "a")

    await repaired(world)

    current = await world.current("a")
    after = Status.FromString(current.status)
    assert attempt_number(after) == 2
    assert idempotency_key(after, current.guid) == idempotency_key(status, action.guid)


async def test_an_attempt_of_an_action_with_two_rows_is_superseded(world: World) -> None:
    action, row = await world.in_flight("a")
    await double_row(world, action)
    await repaired(world)
    outcomes = await world.store.advance([finish(row, action, world.at(900))], world.mark())
    assert outcomes[0].value == "gone"
    await world.assert_sound(actions=1)


@pytest.mark.parametrize("slice_size", [1, 2, 7, EVERYTHING])
async def test_old_rows_are_removed_from_both_queues_whatever_the_slice(world: World, slice_size: int) -> None:
    """Also where the rows of one moment fill a page, and live rows lie between the old ones."""
    puts = [world.create(f"a{n}", shard_id=n % 2)._replace(created_at_us=world.now_us) for n in range(10)]
    actions = await world.carry_out(*puts)
    await world.migrate(*[entry.row for entry in (await world.page(1)).incoming])
    changed = [action for action in actions if action.action_id not in {"a4", "a5"}]
    await world.carry_out(*(world.change(action, shard_id=2) for action in changed))
    await world.assert_sound(actions=10, stale_rows=8)
    live = [await world.row_of(f"a{n}") for n in range(10)]

    assert (await repaired(world, slice_size)).rows == 8

    await world.assert_sound(actions=10)
    assert [await world.row_of(f"a{n}") for n in range(10)] == live


async def test_a_store_that_is_well_is_left_alone(world: World) -> None:
    await world.waiting("a")
    await world.in_flight("b")
    await world.carry_out(world.create("c"))
    async with world.unchanged():
        assert await repaired(world) == Repaired()


async def test_an_action_that_cannot_be_decoded_gets_its_row_all_the_same(world: World) -> None:
    meta = b"\xff not a message"
    action = Action("a", world.ids.guid(), meta, b"\xff", b"\xff", world.at(60))
    await world.carry_out(Put(None, action, 0, world.tick()))
    await lose_row(world, "a")
    assert (await repaired(world)).actions == 1
    assert await world.current("a") == action._replace(guid=(await world.current("a")).guid)
    await world.assert_sound(actions=1)


async def test_rows_in_a_shard_that_is_not_there_are_no_live_rows(world: World) -> None:
    """No worker ever looks there: the action is as good as lost, and the row would lie there for ever."""
    [sound] = await world.carry_out(world.create("sound"))
    await stray(world, "lost", STRAY_SHARD)
    [elsewhere] = await world.carry_out(world.change(sound, shard_id=STRAY_SHARD + 1))
    await world.carry_out(world.change(elsewhere, shard_id=1))

    audit = await world.audit()
    assert audit[:5] == (2, 1, 3, 1, 0)
    assert [(violation.action_id, list(violation.rows)) for violation in audit.violations] == [("lost", [])]
    assert audit.stray_shards == (STRAY_SHARD, STRAY_SHARD + 1)

    done = await repaired(world)

    assert (done.actions, done.rows) == (1, 3)
    await world.assert_sound(actions=2)


async def test_a_row_too_many_in_a_shard_that_is_not_there_is_removed(world: World) -> None:
    action, row = await world.waiting("a")
    await double_row(world, action, shard_id=STRAY_SHARD)
    assert (await world.audit())[:5] == (1, 1, 2, 0, 0)
    assert (await repaired(world)).rows == 2
    assert await world.row_of("a") == row
    await world.assert_sound(actions=1)


async def test_two_repairs_at_once_and_callers_between_them_leave_everything_whole(world: World) -> None:
    await break_all(world)

    async def change(name: str) -> None:
        for _ in range(3):
            [seen] = await world.other.get([name])
            assert seen is not None
            await world.other.put([world.change(seen, shard_id=2)])

    async def begin_all() -> None:
        for shard_id in range(world.store.shards):
            due = [entry.row for entry in await world.entries(shard_id) if entry.action is not None]
            rows = {row.action_id: row for row in due}
            await world.other.advance([begin(row) for row in rows.values()], world.mark())

    names = [f"{queue}{n}" for queue in "pi" for n in range(6)]
    await asyncio.gather(repaired(world, 1), repaired(world, 2), *map(change, names), begin_all())
    await repaired(world)
    await world.assert_sound(actions=12)


async def test_a_repair_that_stops_early_keeps_what_it_did_and_the_next_one_goes_on(world: World) -> None:
    await break_all(world)
    async with aclosing(repair(world.store, world.ids, 2)) as slices:
        async for done in slices:
            assert done == Repaired(actions=2)
            break
    audit = await world.audit()
    assert audit.without_row + audit.with_several_rows == 6
    assert (await repaired(world)).actions == 6
    await world.assert_sound(actions=12)
