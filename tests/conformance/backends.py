"""The stores that the suite is run over. A backend opens an installation of its own for each test.

The suite looks at a store through the port only, so this is all that a new store has to bring.
"""

from pathlib import Path
from typing import Protocol

from clepsydra.core.clock import Clock
from clepsydra.core.times import SECOND_US
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Store
from clepsydra.store.postgres import PostgresStore
from clepsydra.store.sqlite import SqliteStore
from tests.postgres.installations import Installation
from tests.ydb import installations as ydb_installations
from tests.ydb_endpoint import Evaluation

SHARDS = 4


class TestClock:
    """A clock that stands where it is set. A store on a server goes by the server's clock instead.

    So no test may rely on it: times are told relative to the store's own `now`.
    """

    __test__ = False

    def __init__(self, now_us: int = 1_800_000_000 * SECOND_US) -> None:
        self._now_us = now_us

    def set(self, now_us: int) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def monotonic_us(self) -> int:
        return self._now_us


class Backend(Protocol):
    # Whether a put through one handle wakes those who wait at another, as another process would.
    wakeups_reach_other_handles: bool

    def __init__(self, directory: Path) -> None: ...

    async def open(self, clock: Clock) -> Store:
        """A handle on a fresh installation of `SHARDS` shards."""
        ...

    async def reopen(self) -> Store:
        """A second handle on the same installation, as independent of the first as another process's would be."""
        ...

    async def close(self) -> None:
        """Close every handle, and take the installation away."""
        ...


class MemoryBackend:
    """The specification. It has nothing to share but itself."""

    wakeups_reach_other_handles = True
    _store: MemoryStore

    def __init__(self, directory: Path) -> None:
        del directory

    async def open(self, clock: Clock) -> Store:
        self._store = MemoryStore(SHARDS, clock)
        return self._store

    async def reopen(self) -> Store:
        return self._store

    async def close(self) -> None:
        await self._store.close()


class SqliteBackend:
    """One file, and for each handle the connections and threads that a process of its own would have."""

    wakeups_reach_other_handles = True

    def __init__(self, directory: Path) -> None:
        self._path = str(directory / "store.db")
        self._handles: list[SqliteStore] = []

    async def open(self, clock: Clock) -> Store:
        self._clock = clock
        await SqliteStore.install(self._path, SHARDS)
        return await self.reopen()

    async def reopen(self) -> Store:
        store = await SqliteStore.open(self._path, self._clock)
        self._handles.append(store)
        return store

    async def close(self) -> None:
        for store in self._handles:
            await store.close()


class PostgresBackend:
    """A schema of its own on a real server, and for each handle the connections that another process would have."""

    wakeups_reach_other_handles = True

    def __init__(self, directory: Path) -> None:
        del directory
        self._installation = Installation()
        self._handles: list[PostgresStore] = []

    async def open(self, clock: Clock) -> Store:
        self._clock = clock
        await PostgresStore.install(self._installation.url, SHARDS)
        return await self.reopen()

    async def reopen(self) -> Store:
        store = await PostgresStore.open(self._installation.url, self._clock)
        self._handles.append(store)
        return store

    async def close(self) -> None:
        for store in self._handles:
            await store.close()
        await self._installation.drop()


class YdbBackend:
    """A directory of its own on an endpoint that evaluates named expressions again at each use, or on a real server."""

    wakeups_reach_other_handles = False
    evaluation = Evaluation.EACH_USE
    trouble = 0.0

    def __init__(self, directory: Path) -> None:
        del directory
        self._installation = ydb_installations.Installation(self.evaluation, self.trouble)

    async def open(self, clock: Clock) -> Store:
        # Its clock is the server's.
        del clock
        await self._installation.install(SHARDS)
        return await self.reopen()

    async def reopen(self) -> Store:
        return await self._installation.open()

    async def close(self) -> None:
        await self._installation.close()


class YdbOnceBackend(YdbBackend):
    """Here the endpoint also has trouble now and then: each text may be refused, before its rows or after them."""

    evaluation = Evaluation.ONCE
    trouble = 0.05


BACKENDS: dict[str, type[Backend]] = {
    "memory": MemoryBackend,
    "sqlite": SqliteBackend,
    "postgres": PostgresBackend,
    "ydb": YdbBackend,
    "ydb-once": YdbOnceBackend,
}
if ydb_installations.REAL_SERVER:
    BACKENDS = {"ydb": YdbBackend}
