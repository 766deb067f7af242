"""Wake-up hints between processes: NOTIFY tells of what came in, a connection of its own listens.

A notification inside the transaction of a put would hold a lock of the whole server until the commit is on disk, one
notifier after the other. So it is sent afterwards, by itself, at most once in a few milliseconds for all puts since the
last. It is a hint: one that is lost costs latency only, and whoever listens again after a break looks at everything.
"""

import asyncio
from collections.abc import Iterable

import asyncpg

from clepsydra.store.errors import StoreError
from clepsydra.store.postgres.address import Address
from clepsydra.store.postgres.calls import Calls
from clepsydra.store.postgres.errors import FAILURES
from clepsydra.store.postgres.session import connect
from clepsydra.store.wakeup import Wakeups

_BETWEEN_NOTIFICATIONS_S = 0.005
_BETWEEN_LOOKS_S = 10.0
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0

# PostgreSQL takes less than 8,000 bytes.
_PAYLOAD_MAX = 7_000


def channel_of(schema: str) -> str:
    return f"clepsydra_{schema}"


class Arrivals:
    def __init__(self, hints: Wakeups, calls: Calls, address: Address) -> None:
        self._hints = hints
        self._calls = calls
        self._address = address
        self._channel = channel_of(address.schema)
        self._connection: asyncpg.Connection | None = None
        # Names this handle in its own notifications, which it need not hear.
        self._name = "0"
        self._listening: asyncio.Task[None] | None = None
        self._untold: set[int] = set()
        self._telling: asyncio.Task[None] | None = None

    async def start(self, connection: asyncpg.Connection) -> None:
        """Listen from now on, on a connection that is ours from now on."""
        lost = await self._listen_on(connection)
        self._listening = asyncio.create_task(self._keep_listening(lost))

    async def close(self) -> None:
        tasks = [task for task in (self._listening, self._telling) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._let_go()

    def tell(self, shards: Iterable[int]) -> None:
        """Let other processes know, a little later, that something came into these shards."""
        self._untold.update(shards)
        if self._untold and self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            while self._untold:
                shards, self._untold = self._untold, set()
                payload = f"{self._name}:{','.join(map(str, sorted(shards)))}"
                await self._calls.read("notify", self._channel, payload if len(payload) <= _PAYLOAD_MAX else "")
                await asyncio.sleep(_BETWEEN_NOTIFICATIONS_S)
        except StoreError:
            # A hint is not worth more than one try: the next look of a worker finds what came in.
            self._untold.clear()
        finally:
            self._telling = None

    async def _keep_listening(self, lost: asyncio.Event) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                await self._until(lost)
                lost = await self._listen_on(await connect(self._address))
            except FAILURES:
                # The pool's calls report what is wrong with the server; here there is only to try again.
                self._let_go()
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                pause_s = _FIRST_PAUSE_S
                # Whatever was told in between was not heard.
                self._hints.wake_all()

    async def _until(self, lost: asyncio.Event) -> None:
        """Return when the connection is lost; one that has silently died is found by asking it now and then."""
        while not lost.is_set():
            try:
                async with asyncio.timeout(_BETWEEN_LOOKS_S):
                    await lost.wait()
            except TimeoutError:
                if self._connection is not None:
                    await self._connection.execute("SELECT 1")

    async def _listen_on(self, connection: asyncpg.Connection) -> asyncio.Event:
        """Listen on this connection. The event tells when that is over."""
        self._let_go()
        lost = asyncio.Event()
        self._connection = connection
        self._name = str(connection.get_server_pid())
        connection.add_termination_listener(lambda _connection: lost.set())
        await connection.add_listener(self._channel, self._hear)
        return lost

    def _hear(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        """What is not one of our notifications, such as one sent by hand, concerns every shard."""
        sender, _, shards = payload.partition(":")
        if sender == self._name:
            return
        try:
            for shard_id in map(int, shards.split(",")):
                self._hints.wake(shard_id)
        except ValueError:
            self._hints.wake_all()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
