"""A put that is sent again, at once or late, is never done twice and never brings anything back."""

from collections.abc import Awaitable, Callable

import pytest

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.port import Put, PutOutcome, PutResult
from tests.conformance.worlds import DONE, World, begin, finish

Build = Callable[[World], Awaitable[Put]]


async def first_create(world: World) -> Put:
    return world.create("a")


async def an_update(world: World) -> Put:
    [action] = await world.carry_out(world.create("a"))
    return world.change(action)


async def a_delete(world: World) -> Put:
    [action] = await world.carry_out(world.create("a"))
    return world.delete(action)


async def a_change_of_labels(world: World) -> Put:
    [action] = await world.carry_out(world.create("a"))
    return world.relabel(action)


async def a_change_of_settings(world: World) -> Put:
    [action] = await world.carry_out(world.create("a"))
    return world.change_settings(action)


LIVES = pytest.mark.parametrize("build", [first_create, an_update, a_delete])
ALL = pytest.mark.parametrize("build", [first_create, an_update, a_delete, a_change_of_labels, a_change_of_settings])


def aged(put: Put, world: World) -> Put:
    """The call as the store would meet it when no retry of it is due any more."""
    return put._replace(created_at_us=world.now_us - CALL_RETRY_US - 1)


@ALL
async def test_a_put_replayed_at_once_is_done_and_nothing_is_doubled(world: World, build: Build) -> None:
    put = await build(world)
    await world.carry_out(put)
    async with world.unchanged():
        assert await world.store.put([put]) == [DONE]
        assert await world.other.put([put]) == [DONE]


@ALL
async def test_a_put_that_finds_its_own_work_is_done_however_old_it_is(world: World, build: Build) -> None:
    put = await build(world)
    await world.carry_out(put)
    async with world.unchanged():
        assert await world.store.put([aged(put, world)]) == [DONE]


async def migrated(world: World) -> None:
    await world.migrate(await world.row_of("a"))


async def begun(world: World) -> None:
    await migrated(world)
    await world.advance(begin(await world.row_of("a")))


async def begun_out_of_incoming(world: World) -> None:
    await world.advance(begin(await world.row_of("a")))


async def finished(world: World) -> None:
    await begun(world)
    action = await world.current("a")
    await world.advance(finish(await world.row_of("a"), action, world.at(9000)))


@LIVES
@pytest.mark.parametrize("stage", [migrated, begun, begun_out_of_incoming, finished])
async def test_a_put_replayed_after_its_row_went_on_changes_nothing(
    world: World, build: Build, stage: Callable[[World], Awaitable[None]]
) -> None:
    put = await build(world)
    await world.carry_out(put)
    await stage(world)
    async with world.unchanged():
        assert await world.store.put([put]) == [DONE]
    assert (await world.audit()).live_rows == 1


@ALL
@pytest.mark.parametrize("newer", [World.change, World.delete], ids=["update", "delete"])
async def test_a_put_replayed_after_a_newer_one_conflicts(
    world: World, build: Build, newer: Callable[..., Put]
) -> None:
    put = await build(world)
    await world.carry_out(put)
    [current] = await world.carry_out(newer(world, put.action, shard_id=3))
    async with world.unchanged():
        assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, current)]


async def test_labels_replayed_after_newer_labels_conflict(world: World) -> None:
    put = await a_change_of_labels(world)
    await world.carry_out(put)
    [current] = await world.carry_out(world.relabel(put.action))
    assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, current)]
    assert await world.store.get(["a"]) == [current]


@ALL
async def test_a_put_replayed_after_the_purge_brings_nothing_back(world: World, build: Build) -> None:
    put = await build(world)
    await world.carry_out(put)
    await world.remove("a")
    async with world.unchanged():
        # A record outlives the longest retry, so whatever comes after its purge is too old.
        assert await world.store.put([aged(put, world)]) == [PutResult(PutOutcome.TOO_LATE)]
        if put.seen is not None:
            assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, None)]


async def test_a_put_replayed_after_purge_and_new_creation_conflicts(world: World) -> None:
    put = world.create("a")
    await world.carry_out(put)
    await world.remove("a")
    [current] = await world.carry_out(world.create("a", shard_id=1))
    assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, current)]
    await world.assert_sound(actions=1)
