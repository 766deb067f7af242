"""The audit tells on a consistent snapshot whether every action has exactly one live row."""

import asyncio

from clepsydra.store.port import Audit
from tests.conformance.damages import double_row, lose_row
from tests.conformance.worlds import World, begin, finish, incoming_row, key


async def test_the_audit_is_clean_after_every_kind_of_change(world: World) -> None:
    await world.assert_sound(actions=0)
    [action] = await world.carry_out(world.create("a"))
    await world.assert_sound(actions=1)
    [action] = await world.carry_out(world.change(action, shard_id=0))
    await world.assert_sound(actions=1, stale_rows=1)
    [action] = await world.carry_out(world.relabel(action))
    await world.assert_sound(actions=1, stale_rows=1)
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    await world.assert_sound(actions=1, stale_rows=1)
    row = await world.advance(begin(await world.row_of("a")))
    await world.assert_sound(actions=1, stale_rows=1)
    await world.advance(finish(row, action, world.at(900)))
    await world.assert_sound(actions=1, stale_rows=1)
    current = await world.current("a")
    await world.carry_out(world.delete(current, shard_id=3))
    await world.assert_sound(actions=1, stale_rows=2)
    await world.remove("a")
    await world.assert_sound(actions=0, stale_rows=2)


async def test_the_audit_names_an_action_without_a_row(world: World) -> None:
    await world.carry_out(world.create("sound"))
    [action] = await world.carry_out(world.create("broken"))
    await lose_row(world, "broken")
    audit = await world.audit()
    assert audit[:5] == (2, 1, 0, 1, 0)
    assert [(found.action_id, found.guid, list(found.rows)) for found in audit.violations] == [
        ("broken", action.guid, [])
    ]


async def test_the_audit_names_an_action_with_two_rows_and_the_rows(world: World) -> None:
    await world.carry_out(world.create("sound"))
    action, _ = await world.in_flight("broken")
    row = await world.row_of("broken")
    await double_row(world, action)
    audit = await world.audit()
    assert audit[:5] == (2, 3, 1, 0, 1)
    [violation] = audit.violations
    assert (violation.action_id, violation.guid) == ("broken", action.guid)
    surplus = [entry.row for entry in await world.entries(2)]
    # As everybody sees them: the time of the last reschedule tells an operator since when an attempt is in flight.
    assert row.rescheduled_at_us is not None
    assert sorted(violation.rows, key=key) == sorted([row, *surplus], key=key)


async def test_the_limit_bounds_what_is_named_and_not_what_is_counted(world: World) -> None:
    actions = await world.carry_out(*(world.create(f"a{n}") for n in range(7)))
    for action in actions[:3]:
        await double_row(world, action)
    for action in actions[3:]:
        await lose_row(world, action.action_id)
    audit = await world.store.audit(2)
    assert audit[:5] == (7, 6, 3, 4, 3)
    assert len(audit.violations) == 2
    assert (await world.store.audit(0)) == Audit(7, 6, 3, 4, 3, [])


async def test_the_audit_is_consistent_while_others_write(world: World) -> None:
    async def live_through(n: int) -> None:
        """A life in which the rows pass through both queues and two shards."""
        put = world.create(f"a{n}", world.at(n), shard_id=n % 4)
        update = world.change(put.action, shard_id=(n + 1) % 4)
        await world.other.put([put])
        await world.other.migrate([incoming_row(put)], world.mark())
        await world.other.put([update])
        await world.other.advance([begin(incoming_row(update))], world.mark())

    writing = asyncio.gather(*(live_through(n) for n in range(40)))
    while not writing.done():
        audit = await world.audit()
        assert (audit.without_row, audit.with_several_rows) == (0, 0)
        assert audit.live_rows == audit.actions
        await asyncio.sleep(0)
    await writing
    await world.assert_sound(actions=40, stale_rows=40)
