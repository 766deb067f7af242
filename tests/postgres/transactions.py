"""Calls of the port in a transaction that is not committed yet."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.port import Advance, Mark, Put, Row
from clepsydra.store.postgres.array_parameters import advance_parameters, key_parameters, put_parameters
from clepsydra.store.postgres.session import statements
from tests.postgres.installations import Installation


class Uncommitted:
    """A session within a transaction, which executes the statements of the store."""

    def __init__(self, installation: Installation, connection: asyncpg.Connection) -> None:
        self._statements = statements(installation.schema)
        self.connection = connection

    async def write(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        rows: list[asyncpg.Record] = await self.connection.fetch(self._statements[name], *arguments)
        return rows

    async def put(self, *puts: Put) -> None:
        assert await self.write("put", *put_parameters(puts), CALL_RETRY_US) == []

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> None:
        assert await self.write("advance", *advance_parameters(advances), *mark) == []

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> None:
        [[moved]] = await self.write("migrate", *key_parameters(rows), *mark)
        assert moved == len(rows)


@contextlib.asynccontextmanager
async def open_transaction(installation: Installation) -> AsyncIterator[Uncommitted]:
    """A transaction that is committed at the end of the block, unless the block has ended it."""
    connection = await installation.connect()
    try:
        await connection.execute("BEGIN")
        yield Uncommitted(installation, connection)
        await connection.execute("COMMIT")
    finally:
        await connection.close()


async def wait_until_blocked(installation: Installation, task: "asyncio.Task[Any]") -> None:
    """Return when a session of the store waits for a lock. Fails if the task, which should wait, ends instead."""
    connection = await installation.connect()
    try:
        while not await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1",
            installation.schema,
        ):
            assert not task.done(), f"it did not wait, but returned {task.result()}"
            await asyncio.sleep(0)
    finally:
        await connection.close()
