"""A put in a transaction of the application's own: it is committed or rolled back with everything else in it."""

from typing import Any

import asyncpg

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.errors import Unavailable
from clepsydra.store.install import check_version
from clepsydra.store.own_transaction import Place
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.postgres.array_parameters import put_parameters
from clepsydra.store.postgres.calls import translate
from clepsydra.store.postgres.installation import MIGRATIONS
from clepsydra.store.postgres.put import LOST, result_of
from clepsydra.store.postgres.session import statements
from clepsydra.store.postgres.url import check_schema
from clepsydra.store.postgres.wakeup import channel_of

# A put is lost when another transaction has changed the action and committed. This many in a row are no coincidence.
_TRIES = 10


class OwnTransaction:
    """An installation, seen through a connection of the application, which must be within a transaction."""

    def __init__(self, connection: Any, schema: str) -> None:
        if not connection.is_in_transaction():
            raise ValueError("an action is created within a transaction: call this inside `connection.transaction()`")
        self._connection = connection
        self._schema = check_schema(schema)
        self._statements = statements(schema)

    async def look(self, action_id: str) -> Place:
        try:
            row = await self._connection.fetchrow(self._statements["look_before_creation"], action_id)
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise translate(error, f"in schema {self._schema}") from error
        version, shards, now_us, *current = row
        check_version(f"in schema {self._schema}", version or 0, len(MIGRATIONS))
        return Place(shards, now_us, None if current[0] is None else Action(*current))

    async def put(self, put: Put) -> PutResult:
        batch = put_parameters([put])
        for _ in range(_TRIES):
            rows = await self._connection.fetch(self._statements["put"], *batch, CALL_RETRY_US)
            if not rows:
                return PutResult(PutOutcome.DONE)
            [(_place, judgement, *current)] = rows
            if judgement != LOST:
                return result_of(judgement, put.action.action_id, current)
        raise Unavailable(f"action {put.action.action_id!r} changes faster than it can be created; try again")

    async def notify(self, shard_id: int) -> None:
        """Wake workers when the transaction is committed."""
        await self._connection.execute("SELECT pg_notify($1, $2)", channel_of(self._schema), f"transaction:{shard_id}")
