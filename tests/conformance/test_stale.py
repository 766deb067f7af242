"""Paging through processing_queue for rows with old guids: all of them, only them, and then an end."""

from collections.abc import AsyncIterator

import pytest

from clepsydra.store.port import Row, StalePage, Store
from tests.conformance.worlds import ODD_IDS, World, key


async def rotate(store: Store, limit: int, from_us: int = 0) -> AsyncIterator[StalePage]:
    """The pages of one rotation through the first shard; each goes further than the one before."""
    after = None
    while True:
        page = await store.stale(0, after, from_us, limit)
        assert page.seen <= limit
        yield page
        if page.next_after is None:
            return
        assert page.next_after > (after or (0, "", ""))
        after = page.next_after


async def assert_rotation(store: Store, limit: int, stale: list[Row], *, seen: int, from_us: int = 0) -> None:
    """One rotation finds these rows, and looks at so many."""
    pages = [page async for page in rotate(store, limit, from_us)]
    assert sorted((row for page in pages for row in page.stale), key=key) == sorted(stale, key=key)
    assert sum(page.seen for page in pages) == seen
    # The end is told with the last row, not by an empty page after it.
    assert len(pages) == max(1, -(-seen // limit))


async def queue(world: World, names: list[str], times_us: list[int]) -> list[Row]:
    """Fill the first shard's processing_queue; the rows of every third action are stale, and told."""
    actions = await world.carry_out(
        *(world.create(name, at_us) for name, at_us in zip(names, times_us, strict=True)),
    )
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    rows = {entry.row.guid: entry.row for entry in (await world.page(0)).due}
    changed = [action for n, action in enumerate(actions) if n % 3 == 0]
    await world.carry_out(*(world.change(action) for action in changed))
    await world.remove(changed[0].action_id)
    return [rows[action.guid] for action in changed]


@pytest.mark.parametrize("limit", [1, 4, 30, 31, 1000])
async def test_a_rotation_finds_all_stale_rows_and_only_them(world: World, limit: int) -> None:
    stale = await queue(world, [f"a{n}" for n in range(30)], [world.at(n // 2) for n in range(30)])
    await assert_rotation(world.store, limit, stale, seen=30)


async def test_a_rotation_passes_through_rows_of_one_time_whatever_their_ids(world: World) -> None:
    stale = await queue(world, ODD_IDS, [world.at(1)] * len(ODD_IDS))
    await assert_rotation(world.store, 3, stale, seen=len(ODD_IDS))


async def test_a_rotation_passes_through_the_lives_of_one_action_at_one_time(world: World) -> None:
    [action] = await world.carry_out(world.create("a"))
    for _ in range(9):
        [action] = await world.carry_out(world.change(action, shard_id=0))
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    stale = [entry.row for entry in (await world.page(0)).due if entry.action is None]
    await assert_rotation(world.store, 2, stale, seen=10)


async def test_a_rotation_begins_at_the_time_it_is_told(world: World) -> None:
    stale = await queue(world, [f"a{n}" for n in range(20)], [world.at(n) for n in range(20)])
    from_us = world.at(9)
    later = [row for row in stale if row.at_us >= from_us]
    await assert_rotation(world.store, 4, later, seen=11, from_us=from_us)


async def test_a_rotation_that_fell_behind_the_time_goes_on_from_the_time(world: World) -> None:
    stale = await queue(world, [f"a{n}" for n in range(20)], [world.at(n) for n in range(20)])
    page = await world.store.stale(0, (world.at(2), "a2", "any guid"), world.at(9), 1000)
    assert sorted(page.stale, key=key) == sorted((row for row in stale if row.at_us >= world.at(9)), key=key)
    assert page.seen == 11
    page = await world.store.stale(0, (world.at(12), "a12", "~"), world.at(9), 1000)
    assert page.seen == 7


async def test_an_empty_shard_has_nothing_to_find(world: World) -> None:
    await world.waiting("elsewhere", shard_id=1)
    await world.carry_out(world.create("incoming"))
    page = await world.store.stale(0, None, 0, 10)
    assert (list(page.stale), page.next_after, page.seen) == ([], None, 0)


async def test_a_rotation_goes_on_though_the_row_it_stopped_at_is_dropped(world: World) -> None:
    stale = await queue(world, [f"a{n}" for n in range(30)], [world.at(n) for n in range(30)])
    dropped: list[Row] = []
    async for page in rotate(world.store, 1):
        await world.other.drop(page.stale)
        dropped += page.stale
    assert dropped == sorted(stale, key=key)
    # The new rows of the changed actions lie in another shard, and one action was removed.
    await world.assert_sound(actions=29)
