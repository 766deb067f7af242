"""A put in a transaction of the application's own: it is committed or rolled back with whatever else is in it."""

from typing import Any

import asyncpg

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.errors import Unavailable
from clepsydra.store.own_transaction import Place
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.postgres import changes, columns
from clepsydra.store.postgres.address import checked_schema
from clepsydra.store.postgres.arrivals import channel_of
from clepsydra.store.postgres.errors import translated
from clepsydra.store.postgres.installation import version_of
from clepsydra.store.postgres.session import statements

# Each time that somebody else was faster there is one less who can be; this many in a row would be no coincidence.
_TRIES = 10


class Within:
    """An installation as seen from a connection of the application, which must be within a transaction."""

    def __init__(self, connection: Any, schema: str) -> None:
        if not connection.is_in_transaction():
            raise ValueError("an action is created within a transaction: call this inside `connection.transaction()`")
        self._connection = connection
        self._schema = checked_schema(schema)
        self._statements = statements(schema)

    async def look(self, action_id: str) -> Place:
        try:
            row = await self._connection.fetchrow(self._statements["look_before_creation"], action_id)
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise translated(error, f"in schema {self._schema}") from error
        comment, shards, now_us, *current = row
        version_of(comment, f"in schema {self._schema}")
        return Place(shards, now_us, None if current[0] is None else Action(*current))

    async def put(self, put: Put) -> PutResult:
        batch = columns.of_puts([put])
        for _ in range(_TRIES):
            rows = await self._connection.fetch(self._statements["put"], *batch, CALL_RETRY_US)
            if not rows:
                return PutResult(PutOutcome.DONE)
            [(_place, judgement, *current)] = rows
            if judgement != changes.LOST:
                return changes.put_result(put, judgement, current)
        raise Unavailable(f"action {put.action.action_id!r} changes faster than it can be created; try again")

    async def notify(self, shard_id: int) -> None:
        """Let workers look at once when the transaction is committed."""
        await self._connection.execute("SELECT pg_notify($1, $2)", channel_of(self._schema), f"transaction:{shard_id}")
