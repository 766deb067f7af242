"""What a test needs to say about a store, in the words of the domain."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from clepsydra.core.ids import Ids
from clepsydra.core.times import END_OF_TIME_US, SECOND_US
from clepsydra.store.port import (
    Action,
    Advance,
    AdvanceOutcome,
    Audit,
    Due,
    Lock,
    Mark,
    Page,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
    Store,
)

EVERYTHING = 10_000
DONE = PutResult(PutOutcome.DONE)

# Ids are visible ASCII: these look like numbers, patterns, quotes and each other, and sort strangely.
ODD_IDS = [
    "!", "~", "A", "a", "aa", "a-", "a.b", "a/b", "Z", "_", "%", "a%", "a_", "'", '"', "\\", "`", ";--", "{}", "[0]",
    "0", "00", "1", "10", "9", "-1", "1e3", "NULL", "null", "None", "True", "x" * 254, "x" * 255, "X" * 255,
]  # fmt: skip


class Content(NamedTuple):
    """All that a store holds of actions and queues, in an order that does not depend on the store."""

    actions: dict[str, Action]
    rows: list[Row]


class World:
    """A store seen through two handles, a moment that is its now, and builders of calls."""

    def __init__(self, store: Store, other: Store, now_us: int, ids: Ids) -> None:
        self.store = store
        self.other = other
        self.now_us = now_us
        self.ids = ids
        self._ticks = 0

    def at(self, seconds: float) -> int:
        return self.now_us + int(seconds * SECOND_US)

    def tick(self) -> int:
        """A time that no other call of this test has: creations come in the order in which they were built."""
        self._ticks += 1
        return self.now_us + self._ticks

    def mark(self) -> Mark:
        return Mark(self.ids.guid(), self.tick())

    # Calls of the scheduler.

    def life(self, action_id: str, at_us: int | None = None, *, status: bytes = b"planned") -> Action:
        """An action with a guid of its own, planned for the given time."""
        guid = self.ids.guid()
        planned_us = self.at(60) if at_us is None else at_us
        return Action(action_id, guid, b"meta of " + guid.encode(), b"spec", status, planned_us)

    def create(self, action_id: str, at_us: int | None = None, *, shard_id: int = 0) -> Put:
        return Put(None, self.life(action_id, at_us), shard_id, self.tick())

    def change(self, seen: Action, at_us: int | None = None, *, shard_id: int = 1, status: bytes = b"planned") -> Put:
        return Put(seen, self.life(seen.action_id, at_us, status=status), shard_id, self.tick())

    def delete(self, seen: Action, *, shard_id: int = 1) -> Put:
        return self.change(seen, self.at(3600), shard_id=shard_id, status=b"deleted")

    def relabel(self, seen: Action) -> Put:
        return Put(seen, seen._replace(meta=b"labels of " + self.ids.guid().encode()), None, self.tick())

    def change_settings(self, seen: Action) -> Put:
        """A change of meta and spec that starts no new life."""
        name = self.ids.guid().encode()
        return Put(seen, seen._replace(meta=b"settings of " + name, spec=b"spec of " + name), None, self.tick())

    async def carry_out(self, *puts: Put) -> list[Action]:
        """Put what must be accepted, and tell the actions that it made."""
        assert await self.store.put(puts) == [DONE] * len(puts)
        return [put.action for put in puts]

    # Ways of an action into the queues.

    async def waiting(self, action_id: str, at_us: int | None = None, *, shard_id: int = 0) -> tuple[Action, Row]:
        """An action whose row waits in processing_queue."""
        [action] = await self.carry_out(self.create(action_id, at_us, shard_id=shard_id))
        await self.migrate(await self.row_of(action_id))
        return action, await self.row_of(action_id)

    async def in_flight(self, action_id: str, at_us: int | None = None) -> tuple[Action, Row]:
        """An action of which an attempt has begun."""
        action, row = await self.waiting(action_id, at_us)
        return action, await self.advance(begin(row))

    async def migrate(self, *rows: Row) -> None:
        assert await self.store.migrate(rows, self.mark()) == len(rows)

    async def advance(self, advance: Advance) -> Row:
        """Carry out what must be accepted, and tell where the row lies then."""
        mark = self.mark()
        assert await self.store.advance([advance], mark) == [AdvanceOutcome.DONE]
        assert advance.to_us is not None
        return moved(advance.row, advance.to_us, mark)

    async def remove(self, action_id: str) -> None:
        remove = Advance(await self.row_of(action_id), None, (await self.current(action_id)).scheduled_at_us)
        assert await self.store.advance([remove], self.mark()) == [AdvanceOutcome.DONE]

    # What the store holds.

    async def page(self, shard_id: int) -> Page:
        return await whole_page(self.store, shard_id)

    async def row_of(self, action_id: str) -> Row:
        """The one live row of an action."""
        entries = [entry for shard_id in range(self.store.shards) for entry in await self.entries(shard_id)]
        [row] = [row for row, action in entries if action is not None and action.action_id == action_id]
        return row

    async def entries(self, shard_id: int) -> list[Due]:
        page = await self.page(shard_id)
        return [*page.incoming, *page.due]

    async def content(self) -> Content:
        return await content_of(self.store)

    @asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Nothing that happens within leaves a trace."""
        before = await self.content()
        yield
        assert await self.content() == before

    async def current(self, action_id: str) -> Action:
        [action] = await self.store.get([action_id])
        assert action is not None
        return action

    async def audit(self) -> Audit:
        return await self.store.audit(EVERYTHING)

    async def assert_sound(self, *, actions: int, stale_rows: int = 0) -> None:
        """The invariant holds, for this many actions."""
        assert await self.audit() == Audit(actions, actions, stale_rows, 0, 0, [])


async def whole_page(store: Store, shard_id: int) -> Page:
    return await store.due(
        shard_id,
        incoming_from_us=0,
        incoming_limit=EVERYTHING,
        from_us=0,
        until_us=END_OF_TIME_US,
        limit=EVERYTHING,
    )


async def content_of(store: Store) -> Content:
    pages = [await whole_page(store, shard_id) for shard_id in range(store.shards)]
    rows = [entry.row for page in pages for entry in (*page.incoming, *page.due)]
    actions = await store.list_actions(None, EVERYTHING)
    return Content({action.action_id: action for action in actions}, sorted(rows, key=key))


async def line_up(store: Store, now_us: int, ids: Ids) -> None:
    """Let the locks wait in the order of their shards, whichever of the fresh ones the store preferred."""
    held = {}
    for _ in range(store.shards):
        lock = await acquire(store, ids.guid(), now_us)
        assert lock is not None
        held[lock.shard_id] = lock
    for shard_id in range(store.shards):
        await store.release([held[shard_id]], now_us)
        again = await acquire(store, ids.guid(), now_us + 1 + shard_id)
        assert again is not None
        held[shard_id] = again
    await store.release(list(held.values()), now_us + store.shards)


async def acquire(store: Store, lock_guid: str, now_us: int, *, stale_before_us: int = 0) -> Lock | None:
    acquired = await store.acquire(lock_guid, "worker", now_us, stale_before_us)
    return None if acquired is None else acquired.lock


def begin(row: Row, lease_s: int = 30) -> Advance:
    """An ordinary begin: it needs no more than that the row is there and its guid is current."""
    return Advance(row, row.scheduled_at_us + lease_s * SECOND_US)


def finish(row: Row, seen: Action, to_us: int, *, status: bytes = b"finished") -> Advance:
    return Advance(row, to_us, seen.scheduled_at_us, status, to_us)


def incoming_row(put: Put) -> Row:
    """Where a put leaves the row of the life that it starts."""
    action = put.action
    assert put.shard_id is not None
    return Row(Queue.INCOMING, put.shard_id, put.created_at_us, action.action_id, action.guid, action.scheduled_at_us)


def moved(row: Row, to_us: int, mark: Mark) -> Row:
    """Where an advance leaves a row."""
    return Row(Queue.PROCESSING, row.shard_id, to_us, row.action_id, row.guid, to_us, mark.at_us)


def key(row: Row) -> tuple[str, int, int, str, str]:
    return (row.queue.value, row.shard_id, row.at_us, row.action_id, row.guid)


def ids_of(actions: Iterable[Action]) -> list[str]:
    return [action.action_id for action in actions]
