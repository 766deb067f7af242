"""Every call of the port, with arguments by chance from what earlier answers showed, much of it long out of date."""

import random
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import END_OF_TIME_US
from clepsydra.store.memory import MemoryStore
from clepsydra.store.memory.store import ShardLock
from clepsydra.store.port import Action, Advance, Due, Inspection, Lock, Page, Put, Queue, Row, Store
from tests.conformance.worlds import EVERYTHING, World

NAMES = [f"a{n}" for n in range(6)]
# What was seen long ago is worth less than what was seen lately, and memory has an end.
_REMEMBERED = 12

Thing = TypeVar("Thing")
Ask = Callable[[Store], Awaitable[Any]]


class Call(NamedTuple):
    """One call of the port, which can be made at any store, and made again."""

    name: str
    # Whatever does not have to be alike in two stores, such as their clocks, is left out of the answer.
    ask: Ask
    # What is sent when the call is repeated later; None where it only looks.
    again: Ask | None = None
    # For calls that change locks: what the port allows while others do so too, given the answer of the store.
    beside_others: Callable[[MemoryStore, Any], Awaitable[Any]] | None = None
    # Of two calls with the same name here only one is in flight at a time.
    alone: str = ""

    def __repr__(self) -> str:
        return self.name


class Caller:
    """Makes calls up, and learns from the answers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._actions: list[Action] = []
        self._rows: list[Row] = []
        self._stale: list[Row] = []
        self._locks: list[Lock] = []
        self._made: list[Call] = []
        self.kinds: dict[str, Callable[[random.Random], Call]] = {
            "put": self._put,
            "get": self._get,
            "list_actions": self._list,
            "running": self._running,
            "inspect": self._inspect,
            "versions": self._versions,
            "acquire": self._acquire,
            "heartbeat": self._heartbeat,
            "release": self._release,
            "due": self._due,
            "soon": self._soon,
            "migrate": self._migrate,
            "drop": self._drop,
            "advance": self._advance,
            "stale": self._look_for_stale,
            "wait": self._wait,
            "check_writable": lambda _chance: Call("check_writable", lambda store: store.check_writable()),
            "now": lambda _chance: Call("now", _of_no_interest(lambda store: store.now())),
            "locks": lambda _chance: Call("locks", lambda store: store.locks()),
            "stats": self._stats,
            "audit": lambda _chance: Call("audit", lambda store: store.audit(EVERYTHING)),
            "again": self._again,
        }

    def call(self, kind: str, number: int) -> Call:
        made = self.kinds[kind](random.Random(number))
        if made.again is not None:
            self._made.append(made._replace(name=f"{made.name}, again", ask=made.again))
        return made

    def learn(self, answer: Any) -> None:
        """Whatever an answer shows may be named by a later call."""
        for thing in answer if isinstance(answer, list | tuple) and not _is_thing(answer) else [answer]:
            if isinstance(thing, Action):
                self._actions.append(thing)
            elif isinstance(thing, Lock):
                self._locks.append(thing)
            elif isinstance(thing, Due) and thing.action is not None:
                self._rows.append(thing.row)
                self._actions.append(thing.action)
            elif isinstance(thing, Due):
                self._stale.append(thing.row)
            elif isinstance(thing, Row):
                self._stale.append(thing)

    # What the scheduler calls.

    def _put(self, chance: random.Random) -> Call:
        puts = [self._a_put(chance, name) for name in chance.sample(NAMES, chance.randint(1, 3))]
        # A create that is repeated comes after the longest retry: else its guid might become current twice.
        late = [put if put.seen else put._replace(created_at_us=self._too_old_us()) for put in puts]
        return Call(f"put {puts}", lambda store: store.put(puts), lambda store: store.put(late))

    def _a_put(self, chance: random.Random, name: str) -> Put:
        known = [action for action in self._actions[-_REMEMBERED:] if action.action_id == name]
        seen = known[-1] if known and chance.random() < 0.8 else chance.choice([None, *known])
        shard_id = chance.randrange(self._world.store.shards)
        if seen is None:
            put = self._world.create(name, self._world.tick(), shard_id=shard_id)
        elif chance.random() < 0.3:
            put = self._world.change_settings(seen)
        else:
            put = self._world.change(seen, self._world.tick(), shard_id=shard_id)
        return put._replace(created_at_us=self._too_old_us()) if chance.random() < 0.05 else put

    def _too_old_us(self) -> int:
        return self._world.now_us - 10 * CALL_RETRY_US

    def _get(self, chance: random.Random) -> Call:
        names = chance.choices([*NAMES, "nobody"], k=chance.randint(1, 4))
        return Call(f"get {names}", lambda store: store.get(names))

    def _list(self, chance: random.Random) -> Call:
        # YDB's order is its own: a page that holds everything is alike, after the end of everything too.
        del chance

        async def ask(store: Store) -> Any:
            return sorted(await store.list_actions(None, EVERYTHING))

        return Call("list_actions", ask)

    def _running(self, chance: random.Random) -> Call:
        names = chance.choices([*NAMES, "nobody"], k=chance.randint(1, 4))
        after_us, until_us = self._world.now_us, self._world.at(chance.choice([0, 60, 1000]))
        return Call(f"running {names} {until_us}", _inspected(lambda store: store.running(names, after_us, until_us)))

    def _inspect(self, chance: random.Random) -> Call:
        name, until_us = chance.choice([*NAMES, "nobody"]), self._world.at(chance.choice([0, 60, 1000]))
        return Call(f"inspect {name} {until_us}", _inspected(lambda store: store.inspect(name, until_us)))

    # What the worker calls.

    def _versions(self, chance: random.Random) -> Call:
        names = chance.choices([*NAMES, "nobody"], k=chance.randint(1, 4))
        return Call(f"versions {names}", lambda store: store.versions(names))

    def _acquire(self, chance: random.Random) -> Call:
        guid, now_us = self._world.ids.guid(), self._world.tick()
        stale_before_us = now_us - chance.choice([0, 3, 1000])

        async def ask(store: Store) -> Lock | None:
            acquired = await store.acquire(guid, "worker", now_us, stale_before_us)
            return acquired and acquired.lock

        async def beside_others(model: MemoryStore, answer: Lock | None) -> Lock | None:
            """Any lock may be passed over, and so each that is free may be had."""
            held = [shard_id for shard_id, lock in model.shard_locks.items() if lock.locked and lock.guid == guid]
            if held:
                return Lock(held[0], guid)
            if answer is None or not model.shard_locks[answer.shard_id].is_free(now_us, stale_before_us):
                return None
            model.shard_locks[answer.shard_id] = ShardLock(True, guid, "worker", now_us, now_us)
            return Lock(answer.shard_id, guid)

        return Call(f"acquire {guid} {now_us} {stale_before_us}", ask, ask, beside_others, alone=guid)

    def _heartbeat(self, chance: random.Random) -> Call:
        locks, now_us = self._some_locks(chance), self._world.tick() - chance.choice([0, 50])

        async def ask(store: Store) -> Any:
            return (await store.heartbeat(locks, now_us, now_us - 10))[:2]

        async def beside_others(model: MemoryStore, answer: Any) -> Any:
            """How many wait may be told as of another moment."""
            lost, _ = await ask(model)
            return lost, answer[1]

        return Call(f"heartbeat {locks} {now_us}", ask, ask, beside_others)

    def _release(self, chance: random.Random) -> Call:
        locks, now_us = self._some_locks(chance), self._world.tick()

        async def ask(store: Store) -> None:
            await store.release(locks, now_us)

        return Call(f"release {locks} {now_us}", ask, ask, lambda model, _: ask(model))

    def _some_locks(self, chance: random.Random) -> list[Lock]:
        return list({lock.shard_id: lock for lock in self._some(chance, self._locks, 3)}.values())

    def _due(self, chance: random.Random) -> Call:
        shard_id, limit = chance.randrange(self._world.store.shards), chance.choice([0, 2, EVERYTHING])
        from_us = self._world.now_us + chance.choice([0, 20, 100])
        until_us = chance.choice([from_us, END_OF_TIME_US])

        async def ask(store: Store) -> Any:
            page: Page = await store.due(
                shard_id,
                incoming_from_us=from_us,
                incoming_limit=limit,
                from_us=self._world.now_us,
                until_us=until_us,
                limit=limit,
            )
            return [*page.incoming, *page.due]

        return Call(f"due {shard_id} {from_us} {until_us} {limit}", ask)

    def _soon(self, chance: random.Random) -> Call:
        shard_id, limit = chance.randrange(self._world.store.shards), chance.choice([0, 2, EVERYTHING])
        from_us = self._world.now_us + chance.choice([0, 20, 100])
        until_us = self._world.at(chance.choice([0, 60, 1000]))

        async def ask(store: Store) -> list[Row]:
            return await store.soon(shard_id, incoming_from_us=from_us, until_us=until_us, limit=limit)

        return Call(f"soon {shard_id} {from_us} {until_us} {limit}", ask)

    def _migrate(self, chance: random.Random) -> Call:
        rows = [row for row in self._some(chance, self._rows, 4) if row.queue is Queue.INCOMING]
        mark = self._world.mark()

        async def ask(store: Store) -> int:
            return await store.migrate(rows, mark)

        return Call(f"migrate {rows} {mark}", ask, ask)

    def _drop(self, chance: random.Random) -> Call:
        stale = self._some(chance, self._stale, 2)

        async def ask(store: Store) -> None:
            await store.drop(stale)

        return Call(f"drop {stale}", ask, ask)

    def _advance(self, chance: random.Random) -> Call:
        rows = {row.action_id: row for row in (*self._some(chance, self._stale, 1), *self._some(chance, self._rows, 3))}
        advances, mark = [self._an_advance(chance, row) for row in rows.values()], self._world.mark()

        async def ask(store: Store) -> Any:
            return await store.advance(advances, mark)

        return Call(f"advance {advances} {mark}", ask, ask)

    def _an_advance(self, chance: random.Random, row: Row) -> Advance:
        lives = [action for action in self._actions if action.guid == row.guid]
        seen_us = lives[-1].scheduled_at_us if lives and chance.random() < 0.9 else self._world.now_us
        to_us = self._world.tick()
        kinds = [
            Advance(row, to_us),
            Advance(row, to_us, seen_us),
            Advance(row, to_us, seen_us, chance.randbytes(8), to_us),
            Advance(row, to_us, seen_us, chance.randbytes(8), self._world.tick()),
            Advance(row, None, seen_us),
        ]
        return chance.choices(kinds, [4, 3, 3, 3, 2])[0]

    def _look_for_stale(self, chance: random.Random) -> Call:
        shard_id, limit = chance.randrange(self._world.store.shards), chance.choice([1, EVERYTHING])
        after = chance.choice([None, (self._world.now_us + 30, "a3", "")])

        async def ask(store: Store) -> Any:
            page = await store.stale(shard_id, after, self._world.now_us, limit)
            return [*page.stale, page.next_after, page.seen]

        return Call(f"stale {shard_id} {after} {limit}", ask)

    def _wait(self, chance: random.Random) -> Call:
        shard_id = chance.randrange(self._world.store.shards)
        # A wake-up may come too often, and may be lost.
        return Call(f"wait {shard_id}", _of_no_interest(lambda store: store.wait(shard_id, 0.001)))

    def _stats(self, chance: random.Random) -> Call:
        now_us = self._world.now_us + chance.choice([0, 30, 300])
        return Call(f"stats {now_us}", lambda store: store.stats(now_us))

    def _again(self, chance: random.Random) -> Call:
        return chance.choice(self._made[-_REMEMBERED:]) if self._made else self._get(chance)

    def _some(self, chance: random.Random, things: list[Thing], most: int) -> list[Thing]:
        lately = list(dict.fromkeys(things[-_REMEMBERED:]))
        return chance.sample(lately, min(len(lately), chance.randint(1, most)))


def _is_thing(answer: Any) -> bool:
    return isinstance(answer, Action | Lock | Due | Row)


def _inspected(ask: Callable[[Store], Awaitable[Inspection]]) -> Ask:
    """What was found, without the locks, which others change meanwhile, and the clock."""

    async def asked(store: Store) -> Any:
        return (await ask(store)).actions

    return asked


def _of_no_interest(ask: Ask) -> Ask:
    async def asked(store: Store) -> None:
        await ask(store)

    return asked
