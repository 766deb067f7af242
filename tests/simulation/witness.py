"""Stands directly around the store, and sees every call that is committed.

The memory store is the specification, so it runs along even where another store is put to the test: each call goes to
both, and both must answer alike. The oracle judges by what the memory store holds.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from clepsydra.store.memory import MemoryStore
from clepsydra.store.memory.store import _key
from clepsydra.store.port import (
    Acquired,
    Action,
    Advance,
    AdvanceOutcome,
    Audit,
    Heartbeat,
    Inspection,
    Lock,
    LockInfo,
    Mark,
    Page,
    Put,
    PutResult,
    Row,
    StalePage,
    Stats,
    Store,
    Version,
)
from tests.simulation.oracle import Oracle

T = TypeVar("T")


class Witness:
    def __init__(self, memory: MemoryStore, tested: Store | None, oracle: Oracle) -> None:
        self._memory = memory
        self._tested = tested
        self._oracle = oracle
        self._arriving: list[asyncio.Task[None]] = []

    @property
    def shards(self) -> int:
        return self._memory.shards

    def keep(self, task: "asyncio.Task[None]") -> None:
        """A call that is still on its way, though nobody waits for it."""
        self._arriving.append(task)

    async def put(self, process: str, puts: Sequence[Put]) -> list[PutResult]:
        actions = self._memory.actions
        before = [actions.get(put.action.action_id) for put in puts]
        results = await self._both(lambda store: store.put(puts))
        for put, seen, result in zip(puts, before, results, strict=True):
            self._oracle.saw_put(process, put, seen, result)
        self._oracle.check_rows()
        return results

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        return await self._both(lambda store: store.get(action_ids))

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await self._both(lambda store: store.list_actions(after_id, limit))

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        return await self._both(lambda store: store.running(action_ids, after_us, until_us))

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        return await self._both(lambda store: store.inspect(action_id, until_us))

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        return await self._both(lambda store: store.versions(action_ids))

    async def acquire(
        self, process: str, lock_guid: str, worker: str, now_us: int, stale_before_us: int
    ) -> Acquired | None:
        held = {shard_id for shard_id, lock in self._memory.shard_locks.items() if lock.locked}
        acquired = await self._both(lambda store: store.acquire(lock_guid, worker, now_us, stale_before_us))
        self._oracle.saw_acquire(process, acquired, held)
        return acquired

    async def acquire_falsely(self, lock_guid: str, shard_id: int) -> Acquired:
        return Acquired(Lock(shard_id, lock_guid), await self._memory.now())

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        return await self._both(lambda store: store.heartbeat(locks, now_us, stale_before_us))

    async def heartbeat_falsely(self) -> Heartbeat:
        return Heartbeat(frozenset(), 0, await self._memory.now())

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await self._both(lambda store: store.release(locks, now_us))

    async def due(self, shard_id: int, **bounds: Any) -> Page:
        return await self._both(lambda store: store.due(shard_id, **bounds))

    async def soon(self, shard_id: int, **bounds: int) -> list[Row]:
        return await self._both(lambda store: store.soon(shard_id, **bounds))

    async def migrate(self, process: str, rows: Sequence[Row], mark: Mark) -> int:
        moved = await self._both(lambda store: store.migrate(rows, mark))
        self._oracle.saw_migrate(process, rows, moved)
        self._oracle.check_rows()
        return moved

    async def drop(self, process: str, rows: Sequence[Row]) -> None:
        await self._both(lambda store: store.drop(rows))
        self._oracle.saw_drop(process, rows)
        self._oracle.check_rows()

    async def advance(self, process: str, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        rows, actions = self._memory.rows, self._memory.actions
        before = [(_key(advance.row) in rows, actions.get(advance.row.action_id)) for advance in advances]
        outcomes = await self._both(lambda store: store.advance(advances, mark))
        for advance, (was_there, action), outcome in zip(advances, before, outcomes, strict=True):
            self._oracle.saw_advance(process, advance, was_there, action, outcome)
        self._oracle.check_rows()
        return outcomes

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        return await self._both(lambda store: store.stale(shard_id, after, from_us, limit))

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._memory.wait(shard_id, timeout_s)

    async def now(self) -> int:
        return await self._memory.now()

    async def locks(self) -> list[LockInfo]:
        return await self._both(lambda store: store.locks())

    async def stats(self, now_us: int) -> Stats:
        return await self._both(lambda store: store.stats(now_us))

    async def audit(self, limit: int) -> Audit:
        async def audited(store: Store) -> Audit:
            audit = await store.audit(limit)
            # The rows of an action have no order.
            sorted_rows = [found._replace(rows=sorted(found.rows, key=str)) for found in audit.violations]
            return audit._replace(violations=sorted_rows)

        return await self._both(audited)

    async def _both(self, call: Callable[[Store], Awaitable[T]]) -> T:
        answer = await call(self._memory)
        if self._tested is not None:
            try:
                other: Any = await call(self._tested)
            except Exception as error:  # the specification did not raise
                other = error
            if other != answer:
                self._oracle.violated("the store answers as the specification does", f"{other!r} is not {answer}")
        return answer
