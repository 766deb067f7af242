"""Paging through processing_queue for rows with old guids: all of them, only them, and then an end."""

import pytest

from clepsydra.store.port import Row, Store
from tests.conformance.worlds import ODD_IDS, World, key

Cursor = tuple[int, str, str]


async def rotate(store: Store, limit: int, from_us: int = 0) -> tuple[list[Row], int]:
    """One rotation through the first shard: the stale rows, and how many rows were looked at."""
    found: list[Row] = []
    seen, after = 0, None
    while True:
        page = await store.stale(0, after, from_us, limit)
        assert page.seen <= limit
        found += page.stale
        seen += page.seen
        if page.next_after is None:
            return found, seen
        assert after is None or page.next_after > after
        assert page.seen > 0
        after = page.next_after


async def queue(world: World, names: list[str], times_us: list[int]) -> tuple[list[Row], list[Row]]:
    """Fill the first shard's processing_queue; the rows of every third action are stale. Tells these, and all."""
    actions = await world.carry_out(
        *(world.create(name, at_us) for name, at_us in zip(names, times_us, strict=True)),
    )
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    rows = {entry.row.guid: entry.row for entry in (await world.page(0)).due}
    changed = [action for n, action in enumerate(actions) if n % 3 == 0]
    await world.carry_out(*(world.change(action) for action in changed))
    await world.remove(changed[0].action_id)
    return [rows[action.guid] for action in changed], list(rows.values())


@pytest.mark.parametrize("limit", [1, 4, 30, 31, 1000])
async def test_a_rotation_finds_all_stale_rows_and_only_them(world: World, limit: int) -> None:
    stale, _ = await queue(world, [f"a{n}" for n in range(30)], [world.at(n // 2) for n in range(30)])
    found, seen = await rotate(world.store, limit)
    assert sorted(found, key=key) == sorted(stale, key=key)
    assert seen == 30


async def test_a_rotation_passes_through_rows_of_one_time_whatever_their_ids(world: World) -> None:
    stale, _ = await queue(world, ODD_IDS, [world.at(1)] * len(ODD_IDS))
    found, seen = await rotate(world.store, 3)
    assert sorted(found, key=key) == sorted(stale, key=key)
    assert seen == len(ODD_IDS)


async def test_a_rotation_begins_at_the_time_it_is_told(world: World) -> None:
    stale, rows = await queue(world, [f"a{n}" for n in range(20)], [world.at(n) for n in range(20)])
    from_us = world.at(9)
    found, seen = await rotate(world.store, 4, from_us)
    assert sorted(found, key=key) == sorted((row for row in stale if row.at_us >= from_us), key=key)
    assert seen == sum(row.at_us >= from_us for row in rows)


async def test_an_empty_shard_has_nothing_to_find(world: World) -> None:
    await world.waiting("elsewhere", shard_id=1)
    await world.carry_out(world.create("incoming"))
    page = await world.store.stale(0, None, 0, 10)
    assert (list(page.stale), page.next_after, page.seen) == ([], None, 0)


async def test_a_rotation_goes_on_though_the_row_it_stopped_at_is_dropped(world: World) -> None:
    stale, _ = await queue(world, [f"a{n}" for n in range(30)], [world.at(n) for n in range(30)])
    dropped: list[Row] = []
    after: Cursor | None = None
    while True:
        page = await world.store.stale(0, after, 0, 1)
        await world.other.migrate([], page.stale, world.mark())
        dropped += page.stale
        if page.next_after is None:
            break
        after = page.next_after
    assert dropped == sorted(stale, key=key)
    # The new rows of the changed actions lie in another shard, and one action was removed.
    await world.assert_sound(actions=29)
