"""Migrate lets rows through from incoming_queue to processing_queue: those that still exist, each once."""

import asyncio

from clepsydra.store.port import AdvanceOutcome, Queue, Row
from tests.conformance.worlds import World, begin, finish


async def incoming(world: World, *names: str) -> list[Row]:
    await world.carry_out(*(world.create(name) for name in names))
    return [entry.row for entry in (await world.page(0)).incoming]


def settled(row: Row) -> Row:
    """Where migrate leaves a row."""
    return row._replace(queue=Queue.PROCESSING, at_us=row.scheduled_at_us)


async def test_rows_move_to_the_time_that_they_are_planned_for(world: World) -> None:
    a, b, c = await incoming(world, "a", "b", "c")
    # A row that is named twice moves once.
    assert await world.store.migrate([a, c, a], world.mark()) == 2
    assert (await world.content()).rows == [b, settled(a), settled(c)]
    await world.assert_sound(actions=3)


async def test_a_migrate_replayed_or_done_by_another_moves_nothing(world: World) -> None:
    rows = await incoming(world, "a", "b")
    mark = world.mark()
    assert await world.store.migrate(rows, mark) == 2
    begun = await world.advance(begin(await world.row_of("a")))
    for late in (False, True):
        if late:
            await world.advance(finish(begun, await world.current("a"), world.at(900)))
        async with world.unchanged():
            assert await world.store.migrate(rows, mark) == 0
            assert await world.other.migrate(rows, world.mark()) == 0


async def test_only_rows_that_still_exist_are_moved(world: World) -> None:
    a, b, c = await incoming(world, "a", "b", "c")
    await world.advance(begin(a))
    await world.remove("b")
    async with world.unchanged():
        never_was = c._replace(at_us=c.at_us + 1)
        assert await world.store.migrate([a, b, never_was], world.mark()) == 0
    assert await world.store.migrate([a, b, c], world.mark()) == 1


async def test_a_row_that_is_already_processing_is_left_alone(world: World) -> None:
    """Else it would lose the mark by which a replayed advance is recognised."""
    _, row = await world.waiting("a")
    advance, mark = begin(row), world.mark()
    await world.store.advance([advance], mark)
    begun = await world.row_of("a")
    assert await world.store.migrate([begun], world.mark()) == 0
    assert await world.row_of("a") == begun
    assert await world.store.advance([advance], mark) == [AdvanceOutcome.DONE]


async def test_stale_rows_of_both_queues_are_dropped(world: World) -> None:
    processing_action, processing_row = await world.waiting("a")
    [row, fresh] = await incoming(world, "b", "c")
    b = await world.current("b")
    await world.carry_out(world.change(processing_action), world.change(b))
    await world.assert_sound(actions=3, stale_rows=2)
    await world.store.drop([processing_row, row])
    await world.assert_sound(actions=3)
    assert await world.store.migrate([fresh], world.mark()) == 1
    await world.store.drop([processing_row, row])
    await world.store.drop([])
    await world.assert_sound(actions=3)


async def test_a_row_that_grew_stale_on_its_way_moves_and_stays_stale(world: World) -> None:
    [row] = await incoming(world, "a")
    action = await world.current("a")
    await world.carry_out(world.change(action))
    assert await world.store.migrate([row], world.mark()) == 1
    assert [(entry.row, entry.action) for entry in (await world.page(0)).due] == [(settled(row), None)]
    await world.assert_sound(actions=1, stale_rows=1)


async def test_two_lives_of_one_action_may_move_together(world: World) -> None:
    [action] = await world.carry_out(world.create("a"))
    for _ in range(3):
        [action] = await world.carry_out(world.change(action, shard_id=0))
    rows = [entry.row for entry in (await world.page(0)).incoming]
    assert await world.store.migrate(rows, world.mark()) == 4
    assert await world.row_of("a") == settled(rows[-1])
    await world.assert_sound(actions=1, stale_rows=3)


async def test_migrate_of_nothing_does_nothing(world: World) -> None:
    assert await world.store.migrate([], world.mark()) == 0
    assert await world.content() == ({}, [])


async def test_of_two_that_migrate_the_same_rows_each_row_is_moved_by_one(world: World) -> None:
    rows = await incoming(world, *(f"a{n}" for n in range(60)))
    halves = [rows[:40], rows[20:], rows, rows[::-1]]
    handles = [world.store, world.other, world.store, world.other]
    moved = await asyncio.gather(
        *(handle.migrate(batch, world.mark()) for handle, batch in zip(handles, halves, strict=True))
    )
    assert sum(moved) == 60
    await world.assert_sound(actions=60)


async def test_a_large_batch_moves_as_a_whole(world: World) -> None:
    rows = await incoming(world, *(f"a{n:04}" for n in range(1500)))
    assert await world.store.migrate(rows, world.mark()) == 1500
    assert len((await world.page(0)).due) == 1500
    await world.assert_sound(actions=1500)
