"""Reads by id and by page: complete, in a stable order, whatever happens between two pages."""

from collections.abc import AsyncIterator

import pytest

from clepsydra.store.port import Store
from tests.conformance.worlds import EVERYTHING, ODD_IDS, World, ids_of


async def pages(store: Store, limit: int) -> AsyncIterator[list[str]]:
    """The ids of one page after the other; none may come twice."""
    found: list[str] = []
    while page := ids_of(await store.list_actions(found[-1] if found else None, limit)):
        assert len(page) <= limit
        assert not set(page) & set(found)
        found += page
        yield page


async def test_get_keeps_the_order_of_the_ids(world: World) -> None:
    a, b, c = await world.carry_out(*(world.create(action_id) for action_id in "abc"))
    assert await world.store.get(["c", "nothing", "a", "b"]) == [c, None, a, b]
    assert await world.store.get(["b", "b"]) == [b, b]
    assert await world.store.get([]) == []


async def test_both_handles_see_what_was_acknowledged(world: World) -> None:
    [action] = await world.carry_out(world.create("a"))
    assert await world.other.get(["a"]) == [action]
    assert await world.other.list_actions(None, 10) == [action]


async def test_an_empty_store_has_an_empty_page(world: World) -> None:
    assert await world.store.list_actions(None, 10) == []
    assert await world.store.list_actions("a", 10) == []


@pytest.mark.parametrize("limit", [1, 3, len(ODD_IDS), EVERYTHING])
async def test_paging_finds_every_action_once_whatever_its_id(world: World, limit: int) -> None:
    actions = await world.carry_out(*(world.create(action_id) for action_id in ODD_IDS))
    found = [action_id async for page in pages(world.store, limit) for action_id in page]
    assert sorted(found) == sorted(ODD_IDS)
    whole = await world.store.list_actions(None, EVERYTHING)
    assert found == ids_of(whole)
    assert sorted(whole) == sorted(actions)


async def test_a_page_includes_tombstones(world: World) -> None:
    a, b = await world.carry_out(world.create("a"), world.create("b"))
    [tombstone] = await world.carry_out(world.delete(a))
    assert sorted(await world.store.list_actions(None, 10)) == [tombstone, b]


async def test_paging_goes_on_after_an_id_that_is_gone_or_never_was(world: World) -> None:
    names = [f"a{n:02}" for n in range(30)]
    await world.carry_out(*(world.create(action_id) for action_id in names))
    whole = ids_of(await world.store.list_actions(None, EVERYTHING))
    await world.remove(whole[10])
    assert ids_of(await world.store.list_actions(whole[10], 5)) == whole[11:16]
    assert await world.store.list_actions(whole[-1], 5) == []
    rest = ids_of(await world.store.list_actions("a15x", EVERYTHING))
    assert rest == whole[len(whole) - len(rest) :]


async def test_paging_neither_skips_nor_repeats_while_others_insert_and_delete(world: World) -> None:
    keep = {f"{n:02}-keep" for n in range(20)}
    drop = {f"{n:02}-drop" for n in range(20)}
    await world.carry_out(*(world.create(action_id) for action_id in keep | drop))
    found: list[str] = []
    async for page in pages(world.store, 4):
        found += page
        await world.carry_out(*(world.create(f"{n:02}-{len(found)}") for n in range(0, 20, 7)))
        passed, ahead = sorted(drop & set(found)), sorted(drop - set(found))
        for action_id in [*passed[:1], *ahead[:1]]:
            await world.remove(action_id)
            drop.remove(action_id)
    assert keep | drop <= set(found)
