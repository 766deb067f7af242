"""The port on SQLite: what is written goes through one writer, what is read through readers beside it."""

import os
from collections.abc import Sequence

import apsw

from clepsydra.core.clock import Clock
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.batch import check_named_once
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
    Version,
)
from clepsydra.store.sqlite import changes, installation, lookups
from clepsydra.store.sqlite.arrivals import Arrivals
from clepsydra.store.sqlite.checkpoints import Checkpoints
from clepsydra.store.sqlite.connection import QUERIES, connect
from clepsydra.store.sqlite.errors import translated
from clepsydra.store.sqlite.execution import InlineLane, Lane, ThreadLane
from clepsydra.store.sqlite.transactions import commit_together, read_together
from clepsydra.store.sqlite.watching import LogWatch
from clepsydra.store.wakeup import Wakeups

# So many operations are committed together at most: beyond that, waiting longer saves no more syncs.
_GROUP = 128


class SqliteStore:
    """One installation in one file. `open` checks it; `install` makes one."""

    def __init__(self, shards: int, clock: Clock, writer: Lane, reader: Lane) -> None:
        self._shards = shards
        self._clock = clock
        self._writer = writer
        self._reader = reader
        self._hints = Wakeups(shards)
        self._arrivals: Arrivals | None = None
        self._checkpoints: Checkpoints | None = None

    @staticmethod
    def install(path: str, shards: int | None) -> int:
        """Make the installation if it is not there; the number of shards is fixed from then on."""
        return installation.install(path, shards)

    @classmethod
    def open(cls, path: str, clock: Clock) -> "SqliteStore":
        shards = installation.check(path)
        writer, reader, checkpointer = (_connected(path) for _ in range(3))
        checkpoints = Checkpoints(checkpointer, writer)
        lane = ThreadLane(writer, commit_together(path, checkpoints.committed), "clepsydra-writer", _GROUP)
        store = cls(shards, clock, lane, ThreadLane(reader, read_together(path), "clepsydra-reader", _GROUP))
        store._checkpoints = checkpoints
        store._arrivals = Arrivals(store._hints, writer, lane, _watch(path))
        return store

    @classmethod
    def open_inline(cls, path: str, clock: Clock) -> "SqliteStore":
        """Without threads: every call runs at once, in the caller's thread. For simulations."""
        shards = installation.check(path)
        writer, reader = _connected(path), _connected(path)
        return cls(shards, clock, InlineLane(writer, commit_together(path)), InlineLane(reader, read_together(path)))

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        if self._arrivals is not None:
            self._arrivals.close()
        self._hints.wake_all()
        self._writer.close()
        self._reader.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        if not puts:
            return []
        check_named_once(put.action.action_id for put in puts)
        oldest_us = self._clock.now_us() - CALL_RETRY_US
        results = await self._writer.run(changes.put(puts, oldest_us))
        # Where nothing came in after all, a worker looks once in vain.
        for shard_id in {put.shard_id for put in puts}:
            if shard_id is not None:
                self._hints.wake(shard_id)
        return results

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        if not action_ids:
            return []
        return await self._reader.run(lambda connection: lookups.get(connection, action_ids))

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await self._reader.run(lambda connection: lookups.list_actions(connection, after_id, limit))

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        found = await self._reader.run(lambda c: lookups.running(c, action_ids, after_us, until_us))
        return Inspection(*found, self._clock.now_us())

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        found = await self._reader.run(lambda c: lookups.inspect(c, action_id, until_us))
        return Inspection(*found, self._clock.now_us())

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        return await self._reader.run(lambda c: lookups.versions(c, action_ids))

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        # A look costs no sync of the disk, and usually there is nothing to take.
        if not await self._reader.run(lambda c: lookups.free_lock_exists(c, lock_guid, stale_before_us)):
            return None
        shard_id = await self._writer.run(
            lambda connection: changes.acquire(connection, lock_guid, worker, now_us, stale_before_us)
        )
        return None if shard_id is None else Acquired(Lock(shard_id, lock_guid), self._clock.now_us())

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        lost, waiting = await self._writer.run(
            lambda connection: changes.heartbeat(connection, locks, now_us, stale_before_us)
        )
        return Heartbeat(lost, waiting, self._clock.now_us())

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await self._writer.run(lambda connection: changes.release(connection, locks, now_us))

    async def due(
        self,
        shard_id: int,
        *,
        incoming_from_us: int,
        incoming_limit: int,
        from_us: int,
        until_us: int,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> Page:
        return await self._reader.run(
            lambda connection: lookups.due(
                connection, shard_id, incoming_from_us, incoming_limit, (from_us, *after), until_us, limit
            )
        )

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        return await self._reader.run(lambda c: lookups.soon(c, shard_id, incoming_from_us, until_us, limit))

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        if not rows:
            return 0
        # Nobody waits for it: what is due goes first.
        return await self._writer.run(lambda c: changes.migrate(c, rows, mark), can_wait=True)

    async def drop(self, rows: Sequence[Row]) -> None:
        if rows:
            await self._writer.run(lambda c: changes.drop(c, rows), can_wait=True)

    async def check_writable(self) -> None:
        await self._writer.run(changes.check_writable)

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        return await self._writer.run(changes.advance(advances, mark))

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        return await self._reader.run(lambda c: lookups.stale(c, shard_id, after, from_us, limit))

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        source = self._arrivals or self._hints
        return await source.wait(shard_id, timeout_s)

    async def now(self) -> int:
        return self._clock.now_us()

    async def locks(self) -> list[LockInfo]:
        return await self._reader.run(lookups.locks)

    async def stats(self, now_us: int) -> Stats:
        return await self._reader.run(lambda connection: lookups.stats(connection, now_us))

    async def audit(self, limit: int) -> Audit:
        return await self._reader.run(lambda connection: lookups.audit(connection, limit))


def _watch(path: str) -> LogWatch | None:
    try:
        return LogWatch(path)
    except OSError:
        return None


def _connected(path: str) -> apsw.Connection:
    try:
        connection = connect(os.fspath(path))
        connection.execute(QUERIES["temporary_tables"])
        connection.execute(QUERIES["writing"])
    except apsw.Error as error:
        raise translated(error, path) from error
    return connection
