"""The port on YDB: a write is one text that touches rows by their keys, a read is one snapshot.

Each group of the port's methods is in a file of its own: put, advance, read, lock, inspect, audit.
"""

from collections.abc import Mapping

from ydb.aio.driver import Driver

from clepsydra.core.ids import Ids
from clepsydra.store.install import check, install
from clepsydra.store.wakeup import Wakeups
from clepsydra.store.ydb.advance import Advances
from clepsydra.store.ydb.audit import Audits
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.connection.version import warn_if_old
from clepsydra.store.ydb.inspect import Inspections
from clepsydra.store.ydb.installation import YdbInstallation, connected_installation
from clepsydra.store.ydb.lock import Locks
from clepsydra.store.ydb.put import Puts
from clepsydra.store.ydb.read import Reads
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.url import Location, parse_url


class YdbStore(Puts, Advances, Reads, Locks, Audits, Inspections):
    """One installation in one directory. `open` checks it; `install` makes one.

    The server's clock is the store's clock. No wake-ups come from other processes: a waiting worker is woken by puts
    through the same store object, and otherwise reads again when its time has come.
    """

    def __init__(self, location: Location, driver: Driver, sessions: Sessions, retry: Retry, shards: int) -> None:
        self._driver = driver
        self._sessions = sessions
        self._retry = retry
        self._shards = shards
        self._scan_timeout_s = location.limits.scan_timeout_s
        self._late_after_us = location.limits.late_after_us
        self._wakeups = Wakeups(shards)

    @staticmethod
    async def install(url: str, shards: int | None, environment: Mapping[str, str], ids: Ids) -> int:
        """Make an installation or upgrade it. Returns its number of shards."""
        async with connected_installation(parse_url(url), environment, ids) as installation:
            return await install(installation, shards)

    @classmethod
    async def open(cls, url: str, environment: Mapping[str, str], ids: Ids) -> "YdbStore":
        return await cls.open_at(parse_url(url), environment, ids)

    @classmethod
    async def open_at(cls, location: Location, environment: Mapping[str, str], ids: Ids) -> "YdbStore":
        driver = await connect(location, environment)
        sessions = Sessions(driver, location.path, location.limits)
        retry = Retry(location, ids)
        try:
            await warn_if_old(sessions)
            shards = await check(YdbInstallation(location, driver, sessions, retry))
        except BaseException:
            await sessions.close()
            await driver.stop()
            raise
        return cls(location, driver, sessions, retry, shards)

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        self._wakeups.wake_all()
        await self._sessions.close()
        await self._driver.stop()

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._wakeups.wait(shard_id, timeout_s)
