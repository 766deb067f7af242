"""The stores that chaos runs on, each with the faults that are its own."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import apsw

from tests.chaos.disk import Disk
from tests.chaos.proxy import Proxy


class ChaosStore(Protocol):
    """Where the installation is, and what can go wrong there."""

    # Without anything in between: for those who judge.
    url: str
    # None: it cannot be full.
    disk: Disk | None
    # Between the processes and the database, if there is a network between.
    wires: list[Proxy]
    # Whether it is a server, which can crash by itself.
    can_restart: bool

    async def start(self) -> None: ...

    async def url_for(self, node: str) -> str:
        """The store as this process reaches it, through a wire of its own."""
        ...

    async def restart(self) -> None:
        """Crash it, and start it again."""
        ...

    async def recover(self) -> None:
        """What an operator does when the disk has room again."""
        ...

    async def step_clock_back(self, by_us: int) -> int:
        """As if the time of the store stepped back: heartbeats of locks that are held lie ahead of it by so much.

        Returns how many there are: none while the store cannot be written.
        """
        ...

    async def close(self) -> None: ...


_BUSY_MS = 5_000


class SqliteChaos:
    """A file: there is no network to be cut and no server to crash, but the disk can be full."""

    can_restart = False

    def __init__(self, folder: Path, make_disk: Callable[[Path], Disk] | None = None) -> None:
        self._folder = folder
        self._make_disk = make_disk
        self.disk: Disk | None = None
        self.wires: list[Proxy] = []
        self.url = ""

    async def start(self) -> None:
        if self._make_disk is not None:
            self.disk = self._make_disk(self._folder / "disk")
        where = self.disk.folder if self.disk is not None else self._folder
        self.url = f"sqlite:///{where}/clepsydra.db"

    async def url_for(self, node: str) -> str:
        del node
        return self.url

    async def restart(self) -> None:
        raise NotImplementedError("a file has no server that could crash")

    async def recover(self) -> None:
        """A file needs nothing."""

    async def step_clock_back(self, by_us: int) -> int:
        return await asyncio.to_thread(self._step_clock_back, by_us)

    def _step_clock_back(self, by_us: int) -> int:
        connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
        try:
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute(
                "UPDATE shard_locks SET last_heartbeat_at = last_heartbeat_at + ? WHERE locked = 1", (by_us,)
            )
            return connection.changes()
        except apsw.Error:
            return 0
        finally:
            connection.close()

    async def close(self) -> None:
        if self.disk is not None:
            self.disk.close()
