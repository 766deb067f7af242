"""A page of a shard: what came in and what comes due, with the actions that it names, in one snapshot."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from clepsydra.store.port import Due, Page, Put
from tests.conformance.worlds import EVERYTHING, World, begin, ids_of, incoming_row, whole_page


async def look(
    world: World,
    *,
    incoming_from_us: int = 0,
    incoming_limit: int = EVERYTHING,
    from_s: float = 0,
    until_s: float = 1000,
    limit: int = EVERYTHING,
    after: tuple[str, str] = ("", ""),
) -> Page:
    """The first shard, between two times in seconds from now."""
    return await world.store.due(
        0,
        incoming_from_us=incoming_from_us,
        incoming_limit=incoming_limit,
        from_us=world.at(from_s),
        until_us=world.at(until_s),
        limit=limit,
        after=after,
    )


def names(entries: Sequence[Due]) -> list[str]:
    return [entry.row.action_id for entry in entries]


async def test_an_empty_shard_has_an_empty_page(world: World) -> None:
    assert [*map(list, await look(world))] == [[], []]


async def test_what_came_in_is_shown_with_its_action_oldest_first_whenever_it_is_due(world: World) -> None:
    puts = [world.create(name, world.at(at_s)) for name, at_s in (("c", 900), ("a", -5), ("b", 5000))]
    await world.carry_out(*reversed(puts))
    page = await look(world, until_s=10)
    assert list(page.incoming) == [Due(incoming_row(put), put.action) for put in puts]
    assert list(page.due) == []


async def test_what_came_in_is_bounded_by_its_creation_and_by_the_limit(world: World) -> None:
    puts = [world.create(name) for name in "abcd"]
    await world.carry_out(*puts)
    assert names((await look(world, incoming_from_us=puts[1].created_at_us)).incoming) == ["b", "c", "d"]
    assert names((await look(world, incoming_from_us=puts[1].created_at_us + 1)).incoming) == ["c", "d"]
    assert names((await look(world, incoming_limit=2)).incoming) == ["a", "b"]
    assert names((await look(world, incoming_limit=0)).incoming) == []


async def test_what_is_due_can_be_read_from_behind_a_row_among_others_of_the_same_time(world: World) -> None:
    rows = [(await world.waiting(name, world.at(at_s)))[1] for name, at_s in (("a", 1), ("b", 1), ("c", 1), ("d", 2))]
    behind_b = (rows[1].action_id, rows[1].guid)
    assert names((await look(world, from_s=1)).due) == ["a", "b", "c", "d"]
    assert names((await look(world, from_s=1, after=behind_b)).due) == ["c", "d"]
    assert names((await look(world, from_s=1, after=behind_b, limit=1)).due) == ["c"]
    assert names((await look(world, from_s=1, after=behind_b, until_s=1)).due) == ["c"]
    assert names((await look(world, from_s=1, after=("b", ""))).due) == ["b", "c", "d"]
    assert names((await look(world, from_s=2, after=behind_b)).due) == ["d"]


async def test_what_is_due_is_shown_with_its_action_earliest_first(world: World) -> None:
    waiting = [await world.waiting(name, world.at(at_s)) for name, at_s in (("c", 1), ("a", 2), ("b", 3))]
    page = await look(world)
    assert list(page.incoming) == []
    assert list(page.due) == [Due(row, action) for action, row in waiting]


async def test_both_bounds_of_what_is_due_are_included(world: World) -> None:
    for at_s in (1, 2, 3, 4):
        await world.waiting(f"at {at_s}", world.at(at_s))
    assert names((await look(world, from_s=2, until_s=3)).due) == ["at 2", "at 3"]
    assert names((await look(world, from_s=2.000001, until_s=2.999999)).due) == []
    assert names((await look(world, limit=2)).due) == ["at 1", "at 2"]
    assert names((await look(world, limit=0)).due) == []


async def test_a_row_is_due_at_the_time_it_was_advanced_to(world: World) -> None:
    action, row = await world.in_flight("a", world.at(1))
    assert names((await look(world, until_s=30)).due) == []
    assert list((await look(world, until_s=31)).due) == [Due(row, action)]


async def test_a_shard_shows_its_own_rows_only(world: World) -> None:
    await world.waiting("here", world.at(1))
    await world.waiting("there", world.at(1), shard_id=1)
    await world.carry_out(world.create("new here"), world.create("new there", shard_id=2))
    page = await look(world)
    assert (names(page.incoming), names(page.due)) == (["new here"], ["here"])


async def test_a_row_with_an_old_guid_is_shown_without_an_action(world: World) -> None:
    changed, _ = await world.waiting("changed")
    [came_in] = await world.carry_out(world.create("came in"))
    await world.carry_out(world.change(changed), world.change(came_in))
    [purged] = await world.carry_out(world.create("purged"))
    await world.carry_out(world.change(purged))
    await world.remove("purged")
    page = await look(world)
    assert [(entry.row.guid, entry.action) for entry in page.due] == [(changed.guid, None)]
    assert [(entry.row.guid, entry.action) for entry in page.incoming] == [(came_in.guid, None), (purged.guid, None)]


async def test_rows_with_old_guids_count_towards_the_limit(world: World) -> None:
    """Else a page over many of them would have no bound."""
    old, _ = await world.waiting("old", world.at(1))
    await world.waiting("live", world.at(2))
    await world.carry_out(world.change(old))
    assert names((await look(world, limit=1)).due) == ["old"]


async def test_rows_of_one_time_are_all_shown(world: World) -> None:
    await world.carry_out(*(world.create(f"a{n}", world.at(1)) for n in range(50)))
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    assert sorted(names((await look(world)).due)) == sorted(f"a{n}" for n in range(50))
    assert len((await look(world, limit=20)).due) == 20


async def test_a_page_brings_every_body_back_whatever_its_bytes_and_its_size(world: World) -> None:
    draw = random.Random(11)
    sizes = [
        (draw.choice((0, 1, 40, 4095, 4096)), draw.choice((0, 300, 4096, 9000)), draw.randrange(80)) for _ in "a" * 60
    ]
    lives = [
        world.life(f"a{n:02}", world.at(n))._replace(
            meta=draw.randbytes(meta), spec=draw.randbytes(spec), status=draw.randbytes(status)
        )
        for n, (meta, spec, status) in enumerate(sizes)
    ]
    await world.carry_out(*(Put(None, life, 0, world.tick()) for life in lives))
    # Rows without an action lie among them.
    await world.carry_out(*(world.change(life) for life in lives[::7]))
    expected = [None if n % 7 == 0 else life for n, life in enumerate(lives)]
    page = await look(world)
    assert [entry.action for entry in page.incoming] == expected
    await world.migrate(*(entry.row for entry in page.incoming if entry.action is not None))
    assert [entry.action for entry in (await look(world)).due] == [life for life in expected if life is not None]


@pytest.mark.parametrize("by", ["migrate", "advance"])
async def test_a_page_shows_every_live_row_once_while_others_move_them(world: World, by: str) -> None:
    actions = await world.carry_out(*(world.create(f"a{n}", world.at(n)) for n in range(120)))
    rows = [entry.row for entry in (await world.page(0)).incoming]
    random.Random(3).shuffle(rows)

    async def move() -> None:
        for row in rows:
            if by == "migrate":
                await world.other.migrate([row], world.mark())
            else:
                await world.other.advance([begin(row)], world.mark())

    moving = asyncio.create_task(move())
    while not moving.done():
        page = await whole_page(world.store, 0)
        assert sorted(names([*page.incoming, *page.due])) == sorted(ids_of(actions))
        await asyncio.sleep(0)
    await moving
    assert len((await world.page(0)).due) == 120


async def soon(world: World, *, from_us: int = 0, until_s: float = 60, limit: int = EVERYTHING) -> list[str]:
    rows = await world.store.soon(0, incoming_from_us=from_us, until_us=world.at(until_s), limit=limit)
    return [row.action_id for row in rows]


async def test_what_comes_due_soon_is_found_behind_what_came_in_before_it(world: World) -> None:
    times_s = {"a": 900, "b": 60, "c": 61, "d": -5, "e": 59}
    puts = [world.create(name, world.at(at_s)) for name, at_s in times_s.items()]
    await world.carry_out(*puts, world.create("elsewhere", world.at(1), shard_id=1))
    assert await soon(world) == ["b", "d", "e"]
    assert await soon(world, limit=2) == ["b", "d"]
    assert await soon(world, until_s=-6) == []
    assert await soon(world, from_us=puts[1].created_at_us + 1) == ["d", "e"]
    found = await world.store.soon(0, incoming_from_us=0, until_us=world.at(60), limit=1)
    assert found == [incoming_row(puts[1])]


async def test_what_was_found_to_come_due_soon_can_be_let_through(world: World) -> None:
    await world.carry_out(world.create("far", world.at(900)), world.create("near", world.at(5)))
    rows = await world.store.soon(0, incoming_from_us=0, until_us=world.at(60), limit=EVERYTHING)
    assert await world.store.migrate(rows, world.mark()) == 1
    page = await look(world, until_s=10)
    assert (names(page.incoming), names(page.due)) == (["far"], ["near"])
    assert await soon(world) == []
