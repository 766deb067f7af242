"""Callers at once on two handles, some of them after the same rows: safety does not rest on the shard locks."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from clepsydra.store.port import Action, Advance, AdvanceOutcome, Audit, Put, PutOutcome, Row, Store
from tests.conformance.worlds import World, begin, content_of, finish

DONE, STALE, GONE = AdvanceOutcome.DONE, AdvanceOutcome.STALE, AdvanceOutcome.GONE


async def put_one(store: Store, put: Put) -> PutOutcome:
    return (await store.put([put]))[0].outcome


async def advance_one(world: World, store: Store, advance: Advance) -> AdvanceOutcome:
    return (await store.advance([advance], world.mark()))[0]


async def begun(world: World, count: int) -> list[tuple[Action, Row]]:
    """Actions of which attempts have begun."""
    actions = await world.carry_out(*(world.create(f"a{n}", world.at(n)) for n in range(count)))
    await world.store.advance([begin(entry.row) for entry in await world.entries(0)], world.mark())
    rows = {entry.row.action_id: entry.row for entry in (await world.page(0)).due}
    return [(action, rows[action.action_id]) for action in actions]


@pytest.mark.parametrize("size", [1, 7, 60], ids=["single", "small batches", "one batch"])
async def test_of_two_workers_that_advance_the_same_rows_one_moves_each(world: World, size: int) -> None:
    await world.carry_out(*(world.create(f"a{n}") for n in range(60)))
    rows = [entry.row for entry in await world.entries(0)]
    calls = []
    for store, order, lease_s in ((world.store, rows, 30), (world.other, rows[::-1], 40)):
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            calls.append((batch, store.advance([begin(row, lease_s) for row in batch], world.mark())))
    answers = await asyncio.gather(*(answer for _, answer in calls))
    won = Counter(
        row.action_id
        for (batch, _), outcomes in zip(calls, answers, strict=True)
        for row, outcome in zip(batch, outcomes, strict=True)
        if outcome is DONE
    )
    assert Counter(outcome for outcomes in answers for outcome in outcomes) == {DONE: 60, GONE: 60}
    assert won == Counter(row.action_id for row in rows)
    await world.assert_sound(actions=60)


async def test_of_an_update_and_an_outcome_at_once_one_is_accepted(world: World) -> None:
    flights = await begun(world, 50)

    puts = asyncio.gather(*(put_one(world.store, world.change(action)) for action, _ in flights))
    finishes = asyncio.gather(
        *(advance_one(world, world.other, finish(row, action, world.at(900))) for action, row in flights)
    )
    ends = Counter(zip(await puts, await finishes, strict=True))
    assert set(ends) <= {(PutOutcome.DONE, STALE), (PutOutcome.CONFLICT, DONE)}
    finished = ends[PutOutcome.CONFLICT, DONE]
    assert [action.status for action in (await world.content()).actions.values()].count(b"finished") == finished
    await world.assert_sound(actions=50)


async def test_labels_and_an_outcome_at_once_are_both_accepted(world: World) -> None:
    flights = await begun(world, 30)
    labels = [world.relabel(action) for action, _ in flights]
    puts = [put_one(world.store, put) for put in labels]
    finishes = [advance_one(world, world.other, finish(row, action, world.at(900))) for action, row in flights]
    assert await asyncio.gather(*puts, *finishes) == [PutOutcome.DONE] * 30 + [DONE] * 30
    written = {(action.meta, action.status) for action in (await world.content()).actions.values()}
    assert written == {(put.action.meta, b"finished") for put in labels}


async def test_changes_of_one_actions_settings_at_once_are_accepted_once(world: World) -> None:
    """All come to the same meta, as calls of one moment may: a put is done only if its spec was written too."""
    [action] = await world.carry_out(world.create("a"))
    seen = world.change_settings(action)
    puts = [seen._replace(action=seen.action._replace(spec=b"spec %d" % n)) for n in range(20)]
    stores = [world.store, world.other] * 10
    outcomes = await asyncio.gather(*(put_one(store, put) for store, put in zip(stores, puts, strict=True)))
    assert Counter(outcomes) == {PutOutcome.DONE: 1, PutOutcome.CONFLICT: 19}
    [done] = [put for put, outcome in zip(puts, outcomes, strict=True) if outcome is PutOutcome.DONE]
    assert await world.store.get(["a"]) == [done.action]


async def test_migrate_and_advance_of_the_same_rows_at_once_leave_one_row_each(world: World) -> None:
    await world.carry_out(*(world.create(f"a{n}") for n in range(60)))
    rows = [entry.row for entry in await world.entries(0)]
    moves = [world.store.migrate([row], world.mark()) for row in rows]
    begins = [advance_one(world, world.other, begin(row)) for row in rows]
    results = await asyncio.gather(asyncio.gather(*moves), asyncio.gather(*begins))
    for moved, outcome in zip(*results, strict=True):
        assert (moved, outcome) in {(1, GONE), (0, DONE)}
    await world.assert_sound(actions=60)


Contender = tuple[str, Coroutine[Any, Any, PutOutcome | AdvanceOutcome]]


class Contest:
    """For each of many actions, several callers on two handles want to be the one who changes it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.names = [f"{self.random.getrandbits(32):08x}" for _ in range(25)]

    def handle(self) -> Store:
        return self.random.choice((self.world.store, self.world.other))

    def shard(self) -> int:
        return self.random.randrange(self.world.store.shards)

    async def creates(self, name: str) -> list[Contender]:
        puts = [self.world.create(name, shard_id=self.shard()) for _ in range(4)]
        return [(name, put_one(self.handle(), put)) for put in puts]

    async def updates(self, name: str) -> list[Contender]:
        seen = await self.world.current(name)
        puts = [self.world.change(seen, shard_id=self.shard()) for _ in range(3)]
        return [(name, put_one(self.handle(), put)) for put in puts]

    async def begins(self, name: str) -> list[Contender]:
        row = await self.world.row_of(name)
        return [(name, advance_one(self.world, self.handle(), begin(row, lease_s))) for lease_s in (30, 31, 32)]

    async def finishes(self, name: str) -> list[Contender]:
        seen, row = await self.world.current(name), await self.world.row_of(name)
        ends = [finish(row, seen, row.at_us + n) for n in (1, 2, 3)] + [Advance(row, None, seen.scheduled_at_us)]
        return [(name, advance_one(self.world, self.handle(), end)) for end in ends]

    async def winners(self, stage: Callable[[str], Awaitable[list[Contender]]]) -> list[str]:
        """Let all callers of a stage go at once, in an order that nobody chose."""
        contenders = [contender for name in self.names for contender in await stage(name)]
        self.random.shuffle(contenders)
        outcomes = await asyncio.gather(*(call for _, call in contenders))
        return [name for (name, _), outcome in zip(contenders, outcomes, strict=True) if outcome.value == "done"]


@pytest.mark.parametrize("seed", range(3))
async def test_of_hundreds_of_callers_at_once_exactly_one_wins_each_action(world: World, seed: int) -> None:
    contest = Contest(world, seed)
    for stage in (contest.creates, contest.updates, contest.begins, contest.finishes):
        assert sorted(await contest.winners(stage)) == sorted(contest.names)
    audit = await world.audit()
    assert audit == Audit(audit.actions, audit.actions, len(contest.names), 0, 0, [])
    assert await content_of(world.other) == await world.content()
