"""A put takes effect if the action still is as it was seen, and tells for each item what became of it."""

from collections.abc import Callable

import pytest

from clepsydra.core.limits import CALL_RETRY_US, PAYLOAD_BYTES
from clepsydra.core.times import END_OF_TIME_US, SECOND_US
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from tests.conformance.worlds import DONE, ODD_IDS, World, finish, ids_of, incoming_row

TOO_LATE = PutResult(PutOutcome.TOO_LATE)


async def test_a_create_writes_the_action_and_appends_its_row_to_the_chosen_shard(world: World) -> None:
    put = world.create("a", shard_id=2)
    [action] = await world.carry_out(put)
    assert await world.store.get(["a"]) == [action]
    assert await world.content() == ({"a": action}, [incoming_row(put)])
    await world.assert_sound(actions=1)


async def test_an_update_starts_a_new_life_and_leaves_the_old_row_behind(world: World) -> None:
    [old] = await world.carry_out(world.create("a", shard_id=0))
    [new] = await world.carry_out(world.change(old, world.at(5), shard_id=3))
    assert await world.store.get(["a"]) == [new]
    assert [(entry.row.guid, entry.action) for entry in await world.entries(0)] == [(old.guid, None)]
    assert [(entry.row.guid, entry.action) for entry in await world.entries(3)] == [(new.guid, new)]
    await world.assert_sound(actions=1, stale_rows=1)


@pytest.mark.parametrize("build", [World.relabel, World.change_settings], ids=["labels", "settings"])
async def test_a_put_without_a_shard_keeps_guid_status_and_row(
    world: World, build: Callable[[World, Action], Put]
) -> None:
    action, row = await world.in_flight("a")
    put = build(world, action)
    written = put.action._replace(guid="another", status=b"another", scheduled_at_us=world.at(9))
    assert await world.store.put([put._replace(action=written)]) == [DONE]
    assert await world.store.get(["a"]) == [action._replace(meta=put.action.meta, spec=put.action.spec)]
    assert (await world.content()).rows == [row]
    await world.assert_sound(actions=1)


async def test_an_outcome_is_accepted_after_a_change_of_settings_and_leaves_the_spec_alone(world: World) -> None:
    action, row = await world.in_flight("a")
    put = world.change_settings(action)
    await world.carry_out(put)
    await world.advance(finish(row, action, world.at(600)))
    current = await world.current("a")
    assert (current.spec, current.status) == (put.action.spec, b"finished")


async def test_a_put_without_a_shard_is_done_only_if_meta_and_spec_are_its_own(world: World) -> None:
    """Two calls of one moment may come to the same meta with different specs."""
    [action] = await world.carry_out(world.create("a"))
    first = world.change_settings(action)
    second = first._replace(action=first.action._replace(spec=b"another"))
    await world.carry_out(first)
    assert await world.store.put([second]) == [PutResult(PutOutcome.CONFLICT, first.action)]
    assert await world.store.put([first]) == [DONE]


async def test_a_deleted_action_stays_as_a_tombstone_and_can_be_created_over(world: World) -> None:
    [action] = await world.carry_out(world.create("a"))
    [tombstone] = await world.carry_out(world.delete(action))
    assert await world.store.get(["a"]) == [tombstone]
    assert await world.store.put([world.create("a")]) == [PutResult(PutOutcome.CONFLICT, tombstone)]
    [reborn] = await world.carry_out(world.change(tombstone))
    assert await world.store.get(["a"]) == [reborn]
    await world.assert_sound(actions=1, stale_rows=2)


Wrong = Callable[[Action], Action | None]
NOT_AS_SEEN: dict[str, Wrong] = {
    "seen absent": lambda _action: None,
    "another guid": lambda action: action._replace(guid="f" * 32),
    "another time": lambda action: action._replace(scheduled_at_us=action.scheduled_at_us + 1),
    "other labels": lambda action: action._replace(meta=b"other"),
}


@pytest.mark.parametrize("wrong", NOT_AS_SEEN.values(), ids=NOT_AS_SEEN)
async def test_a_put_needs_the_action_as_it_was_seen_and_a_conflict_tells_how_it_is(world: World, wrong: Wrong) -> None:
    [action] = await world.carry_out(world.create("a"))
    async with world.unchanged():
        put = world.change(action)._replace(seen=wrong(action))
        assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, action)]


async def test_a_put_compares_neither_spec_nor_status_themselves(world: World) -> None:
    [action] = await world.carry_out(world.create("a"))
    [new] = await world.carry_out(world.change(action._replace(spec=b"", status=b"")))
    assert await world.store.get(["a"]) == [new]


@pytest.mark.parametrize("build", [World.change, World.relabel], ids=["update", "labels"])
async def test_a_put_that_saw_an_action_conflicts_with_its_absence(
    world: World, build: Callable[[World, Action], Put]
) -> None:
    put = build(world, world.life("a"))
    assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, None)]
    assert await world.content() == ({}, [])


async def test_a_put_conflicts_with_an_outcome_that_it_did_not_see(world: World) -> None:
    action, row = await world.in_flight("a")
    await world.advance(finish(row, action, world.at(600)))
    [current] = await world.store.get(["a"])
    assert await world.store.put([world.change(action)]) == [PutResult(PutOutcome.CONFLICT, current)]
    await world.assert_sound(actions=1)


async def test_labels_compare_the_meta_alone_so_they_pass_by_an_outcome(world: World) -> None:
    action, row = await world.in_flight("a")
    await world.advance(finish(row, action, world.at(600)))
    put = world.relabel(action)
    assert await world.store.put([put]) == [DONE]
    [current] = await world.store.get(["a"])
    assert current == Action("a", action.guid, put.action.meta, action.spec, b"finished", world.at(600))
    assert await world.store.put([world.relabel(action)]) == [PutResult(PutOutcome.CONFLICT, current)]


@pytest.mark.parametrize("present", [True, False])
async def test_labels_of_an_action_that_was_not_seen_conflict(world: World, present: bool) -> None:
    life = world.life("a")
    if present:
        await world.carry_out(Put(None, life, 0, world.tick()))
    put = world.relabel(life)._replace(seen=None)
    assert await world.store.put([put]) == [PutResult(PutOutcome.CONFLICT, life if present else None)]


async def test_each_put_of_a_batch_has_its_own_outcome_in_the_order_of_the_batch(world: World) -> None:
    replayed, updated, labelled, taken = [world.create(action_id) for action_id in ("r", "u", "l", "t")]
    await world.carry_out(replayed, updated, labelled, taken)
    batch = [
        world.change(updated.action),
        world.create("t"),
        world.create("n"),
        replayed,
        world.create("late")._replace(created_at_us=world.now_us - 10 * CALL_RETRY_US),
        world.change(world.life("absent")),
        world.relabel(labelled.action),
    ]
    conflict = PutOutcome.CONFLICT
    assert await world.store.put(batch) == [
        DONE, PutResult(conflict, taken.action), DONE, DONE, TOO_LATE, PutResult(conflict, None), DONE,
    ]  # fmt: skip
    expected = [batch[0].action, taken.action, batch[2].action, replayed.action, None, None, batch[6].action]
    assert await world.store.get([put.action.action_id for put in batch]) == expected
    await world.assert_sound(actions=5, stale_rows=1)


async def test_a_batch_that_names_an_action_twice_is_refused_as_a_whole(world: World) -> None:
    with pytest.raises(ValueError, match="'a'"):
        await world.store.put([world.create("b"), world.create("a"), world.create("a", shard_id=1)])
    assert await world.content() == ({}, [])


async def test_an_empty_batch_does_nothing(world: World) -> None:
    assert await world.store.put([]) == []
    assert await world.content() == ({}, [])


async def test_a_batch_may_be_large(world: World) -> None:
    puts = [world.create(f"a{n}", shard_id=n % world.store.shards) for n in range(1500)]
    actions = await world.carry_out(*puts)
    assert await world.store.get(ids_of(actions)) == actions
    await world.assert_sound(actions=1500)
    await world.carry_out(*(world.change(action) for action in actions))
    await world.assert_sound(actions=1500, stale_rows=1500)


async def test_in_a_large_batch_of_creations_those_that_exist_do_not_hinder_the_others(world: World) -> None:
    there = await world.carry_out(*(world.create(f"a{n}") for n in (3, 700, 1490)))
    puts = [world.create(f"a{n}", shard_id=n % world.store.shards) for n in range(1500)]
    conflicts = {action.action_id: PutResult(PutOutcome.CONFLICT, action) for action in there}
    assert await world.store.put(puts) == [conflicts.get(put.action.action_id, DONE) for put in puts]
    await world.assert_sound(actions=1500)
    # A replay finds the same to be done.
    assert await world.store.put(puts) == [conflicts.get(put.action.action_id, DONE) for put in puts]
    await world.assert_sound(actions=1500)


async def test_bytes_come_back_as_they_went_in(world: World) -> None:
    every_byte = bytes(range(256))
    payload = (every_byte * (PAYLOAD_BYTES // 256 + 1))[:PAYLOAD_BYTES]
    life = world.life("a")._replace(meta=b"\x00" + every_byte, spec=payload, status=b"")
    empty = world.life("b")._replace(meta=b"", spec=b"", status=b"\x00\x00")
    await world.carry_out(Put(None, life, 0, world.tick()), Put(None, empty, 0, world.tick()))
    assert await world.store.get(["a", "b"]) == [life, empty]
    assert [entry.action for entry in (await world.page(0)).incoming] == [life, empty]


async def test_ids_are_kept_apart_however_alike_they_look(world: World) -> None:
    actions = await world.carry_out(*(world.create(action_id) for action_id in ODD_IDS))
    assert await world.store.get(ODD_IDS) == actions
    assert await world.store.put([world.create(action_id) for action_id in ODD_IDS]) == [
        PutResult(PutOutcome.CONFLICT, action) for action in actions
    ]
    await world.migrate(*[entry.row for entry in await world.entries(0)])
    for action_id in ODD_IDS:
        await world.remove(action_id)
    assert await world.content() == ({}, [])


@pytest.mark.parametrize("at_us", [0, 1, END_OF_TIME_US - 1, END_OF_TIME_US])
async def test_every_time_can_be_kept_to_the_microsecond(world: World, at_us: int) -> None:
    action, row = await world.waiting("a", at_us)
    assert (row.at_us, row.scheduled_at_us, action.scheduled_at_us) == (at_us, at_us, at_us)
    assert await world.store.get(["a"]) == [action]


@pytest.mark.parametrize("build", [World.change, World.relabel], ids=["update", "labels"])
async def test_a_put_that_is_older_than_a_call_may_be_retried_is_refused(
    world: World, build: Callable[[World, Action], Put]
) -> None:
    [action] = await world.carry_out(world.create("a"))
    async with world.unchanged():
        too_old_us = world.now_us - CALL_RETRY_US - 1
        assert await world.store.put([build(world, action)._replace(created_at_us=too_old_us)]) == [TOO_LATE]
        assert await world.store.put([world.create("b")._replace(created_at_us=too_old_us)]) == [TOO_LATE]
    in_time_us = await world.store.now() - CALL_RETRY_US + 15 * SECOND_US
    assert await world.store.put([build(world, action)._replace(created_at_us=in_time_us)]) == [DONE]


@pytest.mark.parametrize("taken", range(7))
async def test_of_many_creations_only_that_of_what_is_there_conflicts(world: World, taken: int) -> None:
    ids = [f"a{number}" for number in range(7)]
    [there] = await world.carry_out(world.create(ids[taken]))

    results = await world.store.put([world.create(action_id) for action_id in ids])

    conflict = PutResult(PutOutcome.CONFLICT, there)
    assert results == [conflict if number == taken else DONE for number in range(7)]
    await world.assert_sound(actions=7)
