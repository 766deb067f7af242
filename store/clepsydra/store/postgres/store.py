"""The port on PostgreSQL: one statement for each call, through a pool of connections.

Each group of calls has its file here, and its statements in the file of the same name in the folder `sql`.
"""

from clepsydra.core.clock import Clock
from clepsydra.store.postgres import installation
from clepsydra.store.postgres.advance import Advances
from clepsydra.store.postgres.audit import Audits
from clepsydra.store.postgres.calls import FAILURES, Calls, translate
from clepsydra.store.postgres.lock import Locks
from clepsydra.store.postgres.put import Puts
from clepsydra.store.postgres.read import Reads
from clepsydra.store.postgres.session import connect
from clepsydra.store.postgres.url import PostgresUrl, parse_url
from clepsydra.store.postgres.wakeup import Listener, Notifier
from clepsydra.store.wakeup import Wakeups


class PostgresStore(Puts, Advances, Reads, Locks, Audits):
    """One installation in one schema. `open` checks it; `install` makes or upgrades it. Its clock is the server's."""

    def __init__(self, shards: int, calls: Calls, wakeups: Wakeups, listener: Listener, notifier: Notifier) -> None:
        self._shards = shards
        self._calls = calls
        self._wakeups = wakeups
        self._listener = listener
        self._notifier = notifier

    @staticmethod
    async def install(url: str, shards: int | None) -> int:
        """Make the installation if there is none, or upgrade it; the number of shards is fixed from then on."""
        return await installation.install(parse_url(url), shards)

    @classmethod
    async def open(cls, url: str, clock: Clock) -> "PostgresStore":
        """Raises at once if anything is wrong: only the calls of a store that has worked before are retried."""
        del clock
        parsed = parse_url(url)
        try:
            return await cls._open(parsed)
        except FAILURES as error:
            raise translate(error, parsed.shown) from error

    @classmethod
    async def _open(cls, url: PostgresUrl) -> "PostgresStore":
        connection = await connect(url)
        try:
            shards = await installation.check(connection, url)
            calls, wakeups = await Calls.open(url), Wakeups(shards)
            listener = Listener(wakeups, url)
            await listener.start(connection)
        except BaseException:
            connection.terminate()
            raise
        return cls(shards, calls, wakeups, listener, Notifier(calls, listener, url.schema))

    @property
    def shards(self) -> int:
        return self._shards

    async def close(self) -> None:
        await self._notifier.close()
        await self._listener.close()
        self._wakeups.wake_all()
        await self._calls.close()

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        return await self._wakeups.wait(shard_id, timeout_s)
