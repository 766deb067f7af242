"""Wake-ups between processes, by NOTIFY and LISTEN.

A transaction that notifies holds a lock of the whole server until its commit is on disk, so notifying transactions
commit one after the other. Therefore a put does not notify. A notification follows it in a transaction of its own, at
most one every few milliseconds for all puts since the last. Losing one costs latency only.
"""

import asyncio
from collections.abc import Iterable

import asyncpg

from clepsydra.core.backoff import Backoff
from clepsydra.core.times import MILLISECOND_US, SECOND_US, seconds
from clepsydra.store.errors import StoreError
from clepsydra.store.postgres.calls import FAILURES, Calls
from clepsydra.store.postgres.session import connect
from clepsydra.store.postgres.url import PostgresUrl
from clepsydra.store.wakeup import Wakeups

_BETWEEN_NOTIFICATIONS_S = 0.005
_BETWEEN_CHECKS_S = 10.0
_BACKOFF = Backoff(first_us=50 * MILLISECOND_US, longest_us=5 * SECOND_US, jitter=0.0)

# PostgreSQL takes less than 8,000 bytes.
_PAYLOAD_MAX = 7_000


def channel_of(schema: str) -> str:
    return f"clepsydra_{schema}"


class Listener:
    """Listens on a connection of its own, and listens again after a break."""

    def __init__(self, wakeups: Wakeups, url: PostgresUrl) -> None:
        self._wakeups = wakeups
        self._url = url
        self._connection: asyncpg.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        # Marks the notifications of this process, which need not wake it.
        self.sender = "0"

    async def start(self, connection: asyncpg.Connection) -> None:
        """Listen on this connection, which belongs to the listener from now on."""
        lost = await self._listen_on(connection)
        self._task = asyncio.create_task(self._keep_listening(lost))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._disconnect()

    async def _keep_listening(self, lost: asyncio.Event) -> None:
        failures = 0
        while True:
            try:
                await self._wait_for_loss(lost)
                lost = await self._listen_on(await connect(self._url))
            except FAILURES:
                # Calls through the pool report what is wrong with the server.
                self._disconnect()
                failures += 1
                await asyncio.sleep(seconds(_BACKOFF.pause_us(failures, fraction=0.0)))
            else:
                failures = 0
                # Notifications that were sent in the meantime did not arrive.
                self._wakeups.wake_all()

    async def _wait_for_loss(self, lost: asyncio.Event) -> None:
        """Return when the connection is lost. A statement now and then finds out whether it has died silently."""
        while not lost.is_set():
            try:
                async with asyncio.timeout(_BETWEEN_CHECKS_S):
                    await lost.wait()
            except TimeoutError:
                if self._connection is not None:
                    await self._connection.execute("SELECT 1")

    async def _listen_on(self, connection: asyncpg.Connection) -> asyncio.Event:
        """Returns an event that is set when the connection is lost."""
        self._disconnect()
        lost = asyncio.Event()
        self._connection = connection
        self.sender = str(connection.get_server_pid())
        connection.add_termination_listener(lambda _connection: lost.set())
        await connection.add_listener(channel_of(self._url.schema), self._receive)
        return lost

    def _receive(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        """A payload that is not a notifier's, such as one sent by hand, wakes every shard."""
        sender, _, shards = payload.partition(":")
        if sender == self.sender:
            return
        try:
            for shard_id in map(int, shards.split(",")):
                self._wakeups.wake(shard_id)
        except ValueError:
            self._wakeups.wake_all()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


class Notifier:
    """Notifies other processes, a few milliseconds later, of shards that something came into."""

    def __init__(self, calls: Calls, listener: Listener, schema: str) -> None:
        self._calls = calls
        self._listener = listener
        self._channel = channel_of(schema)
        self._shards: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def notify(self, shards: Iterable[int]) -> None:
        self._shards.update(shards)
        if self._shards and self._task is None:
            self._task = asyncio.create_task(self._send())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self) -> None:
        try:
            while self._shards:
                shards, self._shards = self._shards, set()
                payload = f"{self._listener.sender}:{','.join(map(str, sorted(shards)))}"
                await self._calls.read("notify", self._channel, payload if len(payload) <= _PAYLOAD_MAX else "")
                await asyncio.sleep(_BETWEEN_NOTIFICATIONS_S)
        except StoreError:
            # Workers find what came in at their next read.
            self._shards.clear()
        finally:
            self._task = None
