"""The port on PostgreSQL: one statement for each call, through a pool of connections."""

from collections.abc import Sequence

from clepsydra.core.clock import Clock
from clepsydra.store.batch import check_named_once
from clepsydra.store.port import (
    Acquired,
    Action,
    Advance,
    AdvanceOutcome,
    Audit,
    Heartbeat,
    Lock,
    LockInfo,
    Mark,
    Page,
    Put,
    PutOutcome,
    PutResult,
    Row,
    StalePage,
    Stats,
)
from clepsydra.store.postgres import advancing, changes, inspection, installation, locking, lookups
from clepsydra.store.postgres.address import Address, parsed
from clepsydra.store.postgres.arrivals import Arrivals
from clepsydra.store.postgres.calls import Calls
from clepsydra.store.postgres.errors import FAILURES, translated
from clepsydra.store.postgres.session import connect
from clepsydra.store.wakeup import Wakeups


class PostgresStore:
    """One installation in one schema. `open` checks it; `install` makes one. Its clock is the server's."""

    def __init__(self, shards: int, calls: Calls, hints: Wakeups, arrivals: Arrivals) -> None:
        self._shards = shards
        self._calls = calls
        self._hints = hints
        self._arrivals = arrivals

    @staticmethod
    async def install(url: str, shards: int | None) -> int:
        """Make the installation if it is not there; the number of shards is fixed from then on."""
        return await installation.install(parsed(url), shards)

    @classmethod
    async def open(cls, url: str, clock: Clock) -> "PostgresStore":
        """What is wrong is told at once: patience is for a store that has worked before."""
        del clock
        address = parsed(url)
        try:
            return await cls._open(address)
        except FAILURES as error:
            raise translated(error, address.shown) from error

    @classmethod
    async def _open(cls, address: Address) -> "PostgresStore":
        connection = await connect(address)
        try:
            shards = await installation.check(connection, address)
            calls, hints = await Calls.to(address), Wakeups(shards)
            arrivals = Arrivals(hints, calls, address)
            await arrivals.start(connection)
        except BaseException:
            connection.terminate()
            raise
        return cls(shards, calls, hints, arrivals)

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        await self._arrivals.close()
        self._hints.wake_all()
        await self._calls.close()

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        check_named_once(put.action.action_id for put in puts)
        results = await changes.put(self._calls, puts)
        told = {
            put.shard_id
            for put, result in zip(puts, results, strict=True)
            if put.shard_id is not None and result.outcome is PutOutcome.DONE
        }
        for shard_id in told:
            self._hints.wake(shard_id)
        self._arrivals.tell(told)
        return results

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        return await lookups.get(self._calls, action_ids) if action_ids else []

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await lookups.list_actions(self._calls, after_id, limit)

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        return await locking.acquire(self._calls, lock_guid, worker, now_us, stale_before_us)

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        return await locking.heartbeat(self._calls, locks, now_us, stale_before_us)

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await locking.release(self._calls, locks, now_us)

    async def due(
        self, shard_id: int, *, incoming_from_us: int, incoming_limit: int, from_us: int, until_us: int, limit: int
    ) -> Page:
        return await lookups.due(self._calls, shard_id, incoming_from_us, incoming_limit, from_us, until_us, limit)

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        return await lookups.soon(self._calls, shard_id, incoming_from_us, until_us, limit)

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        return await changes.migrate(self._calls, rows, mark) if rows else 0

    async def drop(self, rows: Sequence[Row]) -> None:
        if rows:
            await changes.drop(self._calls, rows)

    async def check_writable(self) -> None:
        await locking.release(self._calls, (), 0)

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        return await advancing.advance(self._calls, advances, mark)

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        return await lookups.stale(self._calls, shard_id, after, from_us, limit)

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._hints.wait(shard_id, timeout_s)

    async def now(self) -> int:
        [[now_us]] = await self._calls.read("clock")
        return int(now_us)

    async def locks(self) -> list[LockInfo]:
        return await inspection.locks(self._calls)

    async def stats(self, now_us: int) -> Stats:
        return await inspection.stats(self._calls, now_us)

    async def audit(self, limit: int) -> Audit:
        return await inspection.audit(self._calls, limit)
