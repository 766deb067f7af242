"""PostgreSQL under chaos: every process has a wire of its own to a real server, which crashes and whose disk fills."""

import asyncio
import shutil
import socket
import tempfile
from pathlib import Path

import asyncpg

from tests.chaos.disk import Disk, mounted_disk
from tests.chaos.proxy import Proxy
from tests.postgres.server import Server


class PostgresChaos:
    """A server of its own, in a folder that its user can reach; a test's own folder usually cannot be."""

    can_restart = True
    # The server's own folder.
    _where: Path

    def __init__(self, folder: Path, *, disk_can_fill: bool) -> None:
        self._log = folder / "postgres.log"
        self._disk_can_fill = disk_can_fill
        self._folder: Path | None = None
        self._server: Server | None = None
        self.disk: Disk | None = None
        self.wires: list[Proxy] = []
        self.url = ""

    async def start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="clepsydra-chaos-postgres-"))
        self._folder.chmod(0o711)  # noqa: ASYNC240 - a local folder
        if self._disk_can_fill:
            self.disk = mounted_disk(self._folder / "disk")
        self._where = self._folder / "server" if self.disk is None else self.disk.folder
        self._where.mkdir(exist_ok=True)
        self._server = Server(self._where)
        await asyncio.to_thread(self._server.start)
        self.url = self._server.url

    async def url_for(self, node: str) -> str:
        del node
        assert self._server is not None
        wire = Proxy(f"127.0.0.1:{self._server.port}")
        await wire.start()
        self.wires.append(wire)
        return self.url.replace(f":{self._server.port}/", f":{wire.address.rpartition(':')[2]}/")

    async def restart(self) -> None:
        assert self._server is not None
        await asyncio.to_thread(self._server.restart, "immediate")

    async def recover(self) -> None:
        """A server that could not write its log has crashed; with no room to recover in, it has gone for good."""
        assert self._server is not None
        if not _listens(self._server.port):
            await asyncio.to_thread(self._server.start)

    async def step_clock_back(self, by_us: int) -> int:
        try:
            connection = await asyncpg.connect(self.url)
        except (OSError, asyncpg.PostgresError):
            return 0
        try:
            done: str = await connection.execute(
                "UPDATE clepsydra.shard_locks SET last_heartbeat_at = last_heartbeat_at + $1 WHERE locked", by_us
            )
        except (OSError, asyncpg.PostgresError):
            return 0
        finally:
            connection.terminate()
        return int(done.split()[-1])

    async def close(self) -> None:
        try:
            for wire in self.wires:
                await wire.close()
            if self._server is not None:
                await self._stop(self._server)
        finally:
            if self.disk is not None:
                self.disk.close()
            if self._folder is not None:
                shutil.rmtree(self._folder)

    async def _stop(self, server: Server) -> None:
        if _listens(server.port):
            await asyncio.to_thread(server.stop, "immediate")
        if (log := self._where / "log").exists():
            shutil.copyfile(log, self._log)


def _listens(port: int) -> bool:
    """A server that recovers listens already; one that is gone does not."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
