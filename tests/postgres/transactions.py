"""Calls of the port that are under way: carried out, and not yet committed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import asyncpg

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.port import Advance, Mark, Put, Row
from clepsydra.store.postgres import columns
from clepsydra.store.postgres.calls import Answer
from clepsydra.store.postgres.session import statements
from tests.postgres.installations import Installation


class Uncommitted:
    """A session that is within a transaction. It takes the place of the pool."""

    def __init__(self, installation: Installation, connection: asyncpg.Connection) -> None:
        self._statements = statements(installation.schema)
        self.connection = connection

    async def change(self, name: str, *arguments: object, **_patience: object) -> Answer:
        return Answer(await self.connection.fetch(self._statements[name], *arguments), is_of_replay=False)

    async def put(self, *puts: Put) -> None:
        answer = await self.change("put", *columns.of_puts(puts), CALL_RETRY_US)
        assert answer.rows == []

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> None:
        answer = await self.change("advance", *columns.of_advances(advances), *mark)
        assert answer.rows == []

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> None:
        answer = await self.change("migrate", *columns.of_rows(rows), *mark)
        assert answer.rows[0][0] == len(rows)


@contextlib.asynccontextmanager
async def begun(installation: Installation) -> AsyncIterator[Uncommitted]:
    """A transaction that is committed at the end of the block, unless it was ended in it."""
    connection = await installation.connect()
    try:
        await connection.execute("BEGIN")
        yield Uncommitted(installation, connection)
        await connection.execute("COMMIT")
    finally:
        await connection.close()


async def waits_for_lock(installation: Installation, task: "asyncio.Task[Any]") -> None:
    """Return when a session of the store waits for a lock; fail if what should wait has ended instead."""
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
