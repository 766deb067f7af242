"""A real PostgreSQL server with every setting at its default, and a database for each measurement."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from tests.postgres.server import Server

# What makes a commit durable, as PostgreSQL ships it.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


class Databases:
    """What the harness does to the server; one query at a time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._postmaster = psutil.Process(self._postmaster_pid())

    def url_of(self, database: str) -> str:
        return f"{self._url.rpartition('/')[0]}/{database}"

    def create(self, database: str, template: str | None = None) -> str:
        """A database, empty or a copy of another, and its URL. Nothing of it is left to be written when it is made."""
        copied = f" TEMPLATE {template} STRATEGY FILE_COPY" if template else ""
        self.execute(f"CREATE DATABASE {database}{copied}")
        self.execute("CHECKPOINT")
        return self.url_of(database)

    def drop(self, database: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    def tidy(self, database: str) -> None:
        """What autovacuum would have done by and by, so that it does not begin in the midst of a measurement."""
        self.execute("VACUUM ANALYZE", database)
        self.execute("CHECKPOINT")

    def execute(self, statement: str, database: str = "postgres") -> None:
        self._loop.run_until_complete(_on(self.url_of(database), "execute", statement))

    def value(self, query: str, database: str = "postgres") -> Any:
        return self._loop.run_until_complete(_on(self.url_of(database), "fetchval", query))

    def version(self) -> str:
        return str(self.value("SHOW server_version"))

    def cpu_s(self) -> float:
        """What all processes of the server have used so far, those that have ended included."""
        own = self._postmaster.cpu_times()
        used = own.user + own.system + own.children_user + own.children_system
        for process in self._postmaster.children():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used += times.user + times.system
        return float(used)

    def close(self) -> None:
        self._loop.close()

    def _postmaster_pid(self) -> int:
        folder = Path(self.value("SHOW data_directory"))
        return int((folder / "postmaster.pid").read_text().splitlines()[0])

    def check_durable(self) -> None:
        """Raises if a commit would not be on disk."""
        found = self.durability()
        if found != DURABLE:
            raise RuntimeError(f"the server has {found}, and a durable commit needs {DURABLE}")

    def durability(self) -> dict[str, str]:
        return {name: str(self.value(f"SHOW {name}")) for name in DURABLE}


async def _on(url: str, method: str, query: str) -> Any:
    connection = await asyncpg.connect(url, timeout=30)
    try:
        return await getattr(connection, method)(query, timeout=600)
    finally:
        await connection.close()


@contextlib.contextmanager
def running() -> Iterator[Databases]:
    """A server for the time being, and nothing left of it afterwards."""
    with tempfile.TemporaryDirectory(prefix="clepsydra-peers-postgres-") as folder:
        server = Server(Path(folder), settings={})
        server.start()
        databases = None
        try:
            databases = Databases(server.url)
            databases.check_durable()
            yield databases
        finally:
            if databases is not None:
                databases.close()
            server.stop("immediate")
