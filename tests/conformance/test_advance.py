"""Advance, the one write of workers: a row's own key, and its guid, are what lets it move."""

import pytest

from clepsydra.core.times import SECOND_US
from clepsydra.store.port import Action, Advance, AdvanceOutcome, Queue, Row
from tests.conformance.worlds import World, begin, finish, moved

DONE, STALE, GONE = AdvanceOutcome.DONE, AdvanceOutcome.STALE, AdvanceOutcome.GONE


async def assert_changes_nothing(world: World, advance: Advance, outcome: AdvanceOutcome = GONE) -> None:
    async with world.unchanged():
        assert await world.store.advance([advance], world.mark()) == [outcome]


async def test_begin_moves_the_row_and_leaves_the_action_alone(world: World) -> None:
    action, row = await world.waiting("a")
    mark = world.mark()
    assert await world.store.advance([begin(row)], mark) == [DONE]
    to_us = row.at_us + 30 * SECOND_US
    assert await world.content() == ({"a": action}, [moved(row, to_us, mark)])
    await world.assert_sound(actions=1)


async def test_a_row_may_be_advanced_out_of_incoming(world: World) -> None:
    [action] = await world.carry_out(world.create("a", shard_id=2))
    begun = await world.advance(begin(await world.row_of("a")))
    assert await world.content() == ({"a": action}, [begun])


async def test_finish_writes_the_status_and_what_it_plans_and_nothing_else(world: World) -> None:
    action, row = await world.in_flight("a")
    next_row = await world.advance(finish(row, action, world.at(900), status=b"succeeded"))
    assert await world.content() == (
        {"a": action._replace(status=b"succeeded", scheduled_at_us=world.at(900))},
        [next_row],
    )


async def test_row_and_plan_may_be_set_to_different_times(world: World) -> None:
    """An interrupted attempt is counted and the next one begun in one call."""
    action, row = await world.in_flight("a")
    planned_us = action.scheduled_at_us + 1
    retaken = await world.advance(Advance(row, world.at(300), action.scheduled_at_us, b"interrupted", planned_us))
    interrupted = action._replace(status=b"interrupted", scheduled_at_us=planned_us)
    assert await world.content() == ({"a": interrupted}, [retaken])


async def test_extend_moves_the_row_of_an_attempt_and_leaves_the_action_alone(world: World) -> None:
    action, row = await world.in_flight("a")
    extended = await world.advance(Advance(row, row.at_us + SECOND_US, action.scheduled_at_us))
    assert await world.content() == ({"a": action}, [extended])
    await world.advance(finish(extended, action, world.at(900)))
    await world.assert_sound(actions=1)


@pytest.mark.parametrize("migrated", [True, False], ids=["processing", "incoming"])
async def test_an_advance_to_nothing_removes_row_and_action(world: World, migrated: bool) -> None:
    [action] = await world.carry_out(world.create("a"))
    if migrated:
        await world.migrate(await world.row_of("a"))
    remove = Advance(await world.row_of("a"), None, action.scheduled_at_us)
    mark = world.mark()
    assert await world.store.advance([remove], mark) == [DONE]
    assert await world.content() == ({}, [])
    # Nothing is left that could tell a replay from a stranger.
    assert await world.store.advance([remove], mark) == [GONE]


@pytest.mark.parametrize("migrated", [True, False], ids=["processing", "incoming"])
@pytest.mark.parametrize("purged", [False, True], ids=["changed", "purged"])
async def test_a_row_with_an_old_guid_is_deleted_and_the_action_is_left_alone(
    world: World, migrated: bool, purged: bool
) -> None:
    [old] = await world.carry_out(world.create("a"))
    if migrated:
        await world.migrate(await world.row_of("a"))
    row = await world.row_of("a")
    await world.carry_out(world.change(old))
    if purged:
        await world.remove("a")
    actions, rows = await world.content()
    assert await world.store.advance([finish(row, old, world.at(900))], world.mark()) == [STALE]
    assert await world.content() == (actions, [other for other in rows if other != row])
    await assert_changes_nothing(world, finish(row, old, world.at(900)))


async def test_a_removal_by_an_old_row_does_not_remove_the_action(world: World) -> None:
    old, row = await world.waiting("a")
    [new] = await world.carry_out(world.change(old, old.scheduled_at_us))
    assert await world.store.advance([Advance(row, None, old.scheduled_at_us)], world.mark()) == [STALE]
    assert await world.store.get(["a"]) == [new]
    await world.assert_sound(actions=1)


async def test_every_part_of_the_key_is_compared(world: World) -> None:
    action, row = await world.waiting("a")
    await world.waiting("b")
    for wrong in (
        row._replace(shard_id=1),
        row._replace(at_us=row.at_us + 1),
        row._replace(at_us=row.at_us - 1),
        row._replace(action_id="b"),
        row._replace(action_id="c"),
        row._replace(guid="f" * 32),
    ):
        await assert_changes_nothing(world, finish(wrong, action, world.at(900)))
    await world.carry_out(world.create("i"))
    incoming = await world.row_of("i")
    wrong_queues = (row._replace(queue=incoming.queue), incoming._replace(queue=row.queue))
    for wrong in wrong_queues:
        await assert_changes_nothing(world, begin(wrong))


async def test_what_saw_another_plan_than_the_actions_does_nothing(world: World) -> None:
    action, row = await world.in_flight("a")
    await assert_changes_nothing(world, Advance(row, None, action.scheduled_at_us + 1))
    await assert_changes_nothing(world, Advance(row, row.at_us + 1, action.scheduled_at_us - 1))
    seen = action._replace(scheduled_at_us=action.scheduled_at_us - 1)
    await assert_changes_nothing(world, finish(row, seen, world.at(900)))


async def test_a_replay_recognises_its_own_mark_and_a_stranger_does_not(world: World) -> None:
    action, row = await world.waiting("a")
    advance, mark = begin(row), world.mark()
    assert await world.store.advance([advance], mark) == [DONE]
    async with world.unchanged():
        assert await world.store.advance([advance], mark) == [DONE]
        assert await world.other.advance([advance], mark) == [DONE]
        for stranger in (mark._replace(at_us=mark.at_us + 1), mark._replace(sync_guid="stranger")):
            assert await world.store.advance([advance], stranger) == [GONE]
    done = finish(await world.row_of("a"), action, world.at(900))
    mark = world.mark()
    assert await world.store.advance([done], mark) == [DONE]
    assert await world.store.advance([done], mark) == [DONE]
    assert (await world.store.get(["a"])) == [action._replace(status=b"finished", scheduled_at_us=world.at(900))]


async def test_a_replay_recognises_its_work_on_an_action_that_was_changed_since(world: World) -> None:
    action, row = await world.waiting("a")
    advance, mark = begin(row), world.mark()
    await world.store.advance([advance], mark)
    await world.carry_out(world.change(action))
    async with world.unchanged():
        assert await world.store.advance([advance], mark) == [DONE]


async def test_a_late_replay_after_further_advances_is_harmless(world: World) -> None:
    action, row = await world.waiting("a")
    begun, begin_mark = begin(row), world.mark()
    await world.store.advance([begun], begin_mark)
    extend, extend_mark = Advance(await world.row_of("a"), world.at(200), action.scheduled_at_us), world.mark()
    await world.store.advance([extend], extend_mark)
    done, done_mark = finish(await world.row_of("a"), action, world.at(900)), world.mark()
    await world.store.advance([done], done_mark)
    async with world.unchanged():
        assert await world.store.advance([begun], begin_mark) == [GONE]
        assert await world.store.advance([extend], extend_mark) == [GONE]
        assert await world.store.advance([done], done_mark) == [DONE]


async def test_a_worker_that_slept_cannot_finish_an_attempt_that_was_taken_up_again(world: World) -> None:
    action, row = await world.in_flight("a")
    planned_us = action.scheduled_at_us + 1
    await world.advance(Advance(row, world.at(300), action.scheduled_at_us, b"interrupted", planned_us))
    await assert_changes_nothing(world, finish(row, action, world.at(900)))


async def test_an_action_deleted_in_flight_accepts_no_outcome(world: World) -> None:
    action, row = await world.in_flight("a")
    [tombstone] = await world.carry_out(world.delete(action))
    assert await world.store.advance([finish(row, action, world.at(900))], world.mark()) == [STALE]
    assert await world.store.get(["a"]) == [tombstone]
    await world.assert_sound(actions=1)
    await world.remove("a")
    assert await world.content() == ({}, [])


async def test_labels_changed_in_flight_do_not_hinder_the_outcome_and_are_kept(world: World) -> None:
    action, row = await world.in_flight("a")
    [labelled] = await world.carry_out(world.relabel(action))
    await world.advance(finish(row, action, world.at(900)))
    finished = labelled._replace(status=b"finished", scheduled_at_us=world.at(900))
    assert await world.store.get(["a"]) == [finished]


async def test_an_empty_status_is_a_status(world: World) -> None:
    action, row = await world.in_flight("a")
    await world.advance(finish(row, action, world.at(900), status=b""))
    assert await world.store.get(["a"]) == [action._replace(status=b"", scheduled_at_us=world.at(900))]


async def test_a_batch_that_names_an_action_twice_is_refused_as_a_whole(world: World) -> None:
    (_, a), (_, b) = await world.waiting("a"), await world.waiting("b")
    async with world.unchanged():
        with pytest.raises(ValueError, match="'b'"):
            await world.store.advance([begin(a), begin(b), Advance(b._replace(at_us=1), world.at(5))], world.mark())
    assert await world.store.advance([], world.mark()) == []


async def mixed(world: World, count: int) -> tuple[list[Advance], list[AdvanceOutcome], dict[str, Action]]:
    """A batch of every kind, what must come of it, and the actions that must be left."""
    actions = await world.carry_out(*(world.create(f"a{n:04}", world.at(n)) for n in range(count)))
    rows: list[Row] = [entry.row for entry in (await world.page(0)).incoming]
    await world.carry_out(*(world.change(action) for action in actions[3::6]))
    changed = {action.action_id: action for action in await world.store.list_actions(None, count)}
    advances, outcomes = [], []
    for n, (action, row) in enumerate(zip(actions, rows, strict=True)):
        later_us = world.at(5000 + n)
        advance, outcome = (
            (begin(row), DONE),
            (finish(row, action, later_us), DONE),
            (Advance(row, None, action.scheduled_at_us), DONE),
            (finish(row, action, later_us), STALE),
            (begin(row._replace(at_us=row.at_us - 1)), GONE),
            (Advance(row, later_us, action.scheduled_at_us + 1), GONE),
        )[n % 6]
        advances.append(advance)
        outcomes.append(outcome)
        if n % 6 == 1:
            changed[action.action_id] = action._replace(status=b"finished", scheduled_at_us=later_us)
        elif n % 6 == 2:
            del changed[action.action_id]
    return advances, outcomes, changed


async def test_each_row_of_a_large_mixed_batch_has_its_own_outcome(world: World) -> None:
    advances, outcomes, left = await mixed(world, 1200)
    mark = world.mark()
    assert await world.store.advance(advances, mark) == outcomes
    actions, rows = await world.content()
    assert actions == left
    await world.assert_sound(actions=1000)
    moved_rows = [moved(a.row, a.to_us, mark) for n, a in enumerate(advances) if n % 6 < 2 and a.to_us is not None]
    assert set(moved_rows) <= set(rows)
    # Sent again, what moved is recognised, and what went away has gone.
    again = [DONE if n % 6 < 2 else GONE for n in range(1200)]
    assert await world.store.advance(advances, mark) == again
    assert await world.content() == (actions, rows)


@pytest.mark.parametrize("kind", ["begin what came in", "begin what waits", "finish"])
async def test_in_a_batch_of_one_kind_those_that_are_hindered_do_not_hinder_the_others(world: World, kind: str) -> None:
    """Each is hindered in another way: changed by its user, moved by another worker, or never there."""
    names = ["free", "changed", "moved", "more"]
    advances = []
    for name in names:
        if kind == "begin what came in":
            await world.carry_out(world.create(name))
            advances.append(begin(await world.row_of(name)))
        elif kind == "begin what waits":
            advances.append(begin((await world.waiting(name))[1]))
        else:
            action, row = await world.in_flight(name)
            advances.append(finish(row, action, world.at(900)))
    await world.carry_out(world.change(await world.current("changed")))
    elsewhere = await world.advance(advances[2]._replace(to_us=world.at(70)))
    nobody = advances[0]._replace(row=advances[0].row._replace(action_id="nobody"))
    mark = world.mark()
    assert await world.store.advance([*advances, nobody], mark) == [DONE, STALE, GONE, DONE, GONE]
    rows = {row.action_id: row for row in (await world.content()).rows}
    assert [rows[name].at_us for name in ("free", "more")] == [advances[n].to_us for n in (0, 3)]
    assert rows["moved"] == elsewhere
    await world.assert_sound(actions=4)
    # A replay finds the same to be done.
    assert await world.store.advance(advances, mark) == [DONE, GONE, GONE, DONE]


async def test_a_range_that_begins_together_leaves_others_alone_and_is_hindered_row_by_row(world: World) -> None:
    """Whatever lies between them, or has gone from there, in a batch that was a range of the queue when it was read."""
    names = [f"a{n:03}" for n in range(300)]
    await world.carry_out(*(world.create(name) for name in names))
    rows = [entry.row for entry in await world.entries(0)]
    whole, gone, changed, unnamed = rows[:70], rows[70:140], rows[140:210], rows[210:]
    assert await world.store.advance([begin(row) for row in whole], world.mark()) == [DONE] * 70
    # Another worker has begun one of the next, and one came in instead, at the same place.
    await world.advance(begin(gone[30])._replace(to_us=world.at(70)))
    await world.carry_out(world.create(f"{gone[30].action_id}!")._replace(created_at_us=gone[30].at_us))
    expected = [GONE if row is gone[30] else DONE for row in gone]
    assert await world.store.advance([begin(row) for row in gone], world.mark()) == expected
    await world.carry_out(world.change(await world.current(changed[10].action_id)))
    expected = [STALE if row is changed[10] else DONE for row in changed]
    assert await world.store.advance([begin(row) for row in changed], world.mark()) == expected
    # One that is not named stays.
    named = [row for row in unnamed if row is not unnamed[5]]
    mark = world.mark()
    assert await world.store.advance([begin(row) for row in named], mark) == [DONE] * len(named)
    assert await world.store.advance([begin(row) for row in named], mark) == [DONE] * len(named)
    left = {entry.row.action_id for entry in (await world.page(0)).incoming}
    assert left == {unnamed[5].action_id, f"{gone[30].action_id}!"}
    await world.assert_sound(actions=301)


@pytest.mark.parametrize("is_migrated", [True, False], ids=["from processing_queue", "straight from incoming_queue"])
async def test_a_row_that_moves_onto_another_of_its_life_replaces_it(world: World, is_migrated: bool) -> None:
    """Only a damaged installation has two: whoever meets them must be able to go on."""
    action, row = await world.waiting("a", world.at(60), shard_id=2)
    moved_away = await world.advance(begin(row))
    [changed] = await world.carry_out(world.change(action, shard_id=3))
    await world.carry_out(world.change(changed, shard_id=2)._replace(action=action))
    [second] = [entry.row for entry in await world.entries(2) if entry.row.queue is Queue.INCOMING]
    if is_migrated:
        await world.migrate(second)
        [second] = [entry.row for entry in await world.entries(2) if entry.row.at_us == row.at_us]
    landed = await world.advance(begin(second))
    assert landed.at_us == moved_away.at_us
    audit = await world.audit()
    assert (audit.actions, audit.live_rows) == (1, 1)


@pytest.mark.parametrize("writes", [False, True], ids=["begin", "finish"])
async def test_a_row_that_moves_to_its_own_time_stays(world: World, writes: bool) -> None:
    """No caller does this: times never repeat within a life. A store that did it in two steps would lose the row."""
    action, row = await world.in_flight("a")
    mark = world.mark()
    planned_us = action.scheduled_at_us + 1
    in_place = (
        Advance(row, row.at_us, action.scheduled_at_us, b"again", planned_us) if writes else Advance(row, row.at_us)
    )
    assert await world.store.advance([in_place], mark) == [DONE]
    changed = action._replace(status=b"again", scheduled_at_us=planned_us) if writes else action
    assert await world.content() == ({"a": changed}, [moved(row, row.at_us, mark)])
    await world.assert_sound(actions=1)


async def test_a_removal_that_finds_its_own_mark_on_its_row_changes_nothing(world: World) -> None:
    """The row carries the mark of this very call, and the action is not as it was seen."""
    action, row = await world.waiting("a")
    mark = world.mark()
    assert await world.store.advance([begin(row)], mark) == [DONE]
    begun = moved(row, row.at_us + 30 * SECOND_US, mark)
    async with world.unchanged():
        removal = Advance(begun, None, action.scheduled_at_us + 1)
        assert await world.store.advance([removal], mark) == [GONE]
    await world.assert_sound(actions=1)
