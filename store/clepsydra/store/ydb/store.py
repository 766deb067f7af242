"""The port on YDB: writes are single texts that touch points, reads are snapshots."""

from collections.abc import Mapping, Sequence

from ydb.aio.driver import Driver

from clepsydra.core.ids import Ids
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
from clepsydra.store.wakeup import Wakeups
from clepsydra.store.ydb import installation
from clepsydra.store.ydb.audit import audit
from clepsydra.store.ydb.changes import Changes
from clepsydra.store.ydb.connection import connect
from clepsydra.store.ydb.location import Location, locate
from clepsydra.store.ydb.lookups import Lookups
from clepsydra.store.ydb.sessions import Sessions
from clepsydra.store.ydb.tries import Tries


class YdbStore:
    """One installation in one directory. `open` checks it; `install` makes one.

    The time is the server's everywhere. There is no hint from other processes: those who wait are woken by puts through
    the same handle, and otherwise look again when their time has come.
    """

    def __init__(self, location: Location, driver: Driver, sessions: Sessions, tries: Tries, shards: int) -> None:
        limits = location.limits
        self._limits = limits
        self._driver = driver
        self._sessions = sessions
        self._tries = tries
        self._shards = shards
        self._hints = Wakeups(shards)
        self._lookups = Lookups(sessions, limits.timeout_s, limits.scan_timeout_s)
        self._changes = Changes(sessions, self._lookups, tries)

    @staticmethod
    async def install(url: str, shards: int | None, environment: Mapping[str, str], ids: Ids) -> int:
        """Make the installation if it is not there; the number of shards is fixed from then on."""
        return await installation.install(locate(url), environment, shards, ids)

    @classmethod
    async def open(cls, url: str, environment: Mapping[str, str], ids: Ids) -> "YdbStore":
        return await cls.open_at(locate(url), environment, ids)

    @classmethod
    async def open_at(cls, location: Location, environment: Mapping[str, str], ids: Ids) -> "YdbStore":
        driver = await connect(location, environment)
        sessions = Sessions(driver, location.path, location.limits)
        tries = Tries(location, ids)
        try:
            shards = await installation.check(location, driver, sessions, tries)
        except BaseException:
            await sessions.close()
            await driver.stop()
            raise
        return cls(location, driver, sessions, tries, shards)

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        self._hints.wake_all()
        await self._sessions.close()
        await self._driver.stop()

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        if not puts:
            return []
        check_named_once(put.action.action_id for put in puts)
        results = await self._changes.put(puts)
        for put, result in zip(puts, results, strict=True):
            if put.shard_id is not None and result.outcome is PutOutcome.DONE:
                self._hints.wake(put.shard_id)
        return results

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        return await self._tries.read(lambda: self._lookups.get(action_ids)) if action_ids else []

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await self._tries.read(lambda: self._lookups.list_actions(after_id, limit))

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        return await self._changes.acquire(lock_guid, worker, now_us, stale_before_us)

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        return await self._changes.heartbeat(locks, now_us, stale_before_us)

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await self._changes.release(locks, now_us)

    async def due(
        self, shard_id: int, *, incoming_from_us: int, incoming_limit: int, from_us: int, until_us: int, limit: int
    ) -> Page:
        return await self._tries.read(
            lambda: self._lookups.due(shard_id, incoming_from_us, incoming_limit, from_us, until_us, limit)
        )

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        return await self._tries.read(lambda: self._lookups.soon(shard_id, incoming_from_us, until_us, limit))

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        return await self._changes.migrate(rows, mark) if rows else 0

    async def drop(self, rows: Sequence[Row]) -> None:
        if rows:
            await self._changes.drop(rows)

    async def check_writable(self) -> None:
        await self._changes.check_writable()

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        return await self._changes.advance(advances, mark)

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        return await self._tries.read(lambda: self._lookups.stale(shard_id, after, from_us, limit))

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._hints.wait(shard_id, timeout_s)

    async def now(self) -> int:
        return await self._tries.read(self._lookups.now)

    async def locks(self) -> list[LockInfo]:
        return await self._tries.read(lambda: self._lookups.locks(self._shards))

    async def stats(self, now_us: int) -> Stats:
        return await self._tries.read(lambda: self._lookups.stats(now_us))

    async def audit(self, limit: int) -> Audit:
        return await self._tries.read(lambda: audit(self._sessions, self._shards, limit, self._limits.scan_timeout_s))
