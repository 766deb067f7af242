"""How a session is opened: its settings, its limits, and the statements of its installation."""

import re
from functools import cache, partial
from typing import Any

import asyncpg

from clepsydra.store.postgres.address import Address
from clepsydra.store.statements import Statements

# A statement that the server has given up is certainly not carried out, so the server gives up before the driver does.
LOCK_TIMEOUT_S = 3
STATEMENT_TIMEOUT_S = 5
ANSWER_TIMEOUT_S = 7

SETTINGS = {
    "application_name": "clepsydra",
    # What is acknowledged is on disk, whatever the server's default is.
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{LOCK_TIMEOUT_S}s",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "idle_in_transaction_session_timeout": "60s",
    # A batch is held in memory, not in temporary files.
    "work_mem": "32MB",
    # One plan is right for every statement here, at any size of table and batch: lookups by key in nested loops, made
    # once per session. The planner would choose another whenever a queue happens to be empty, and keep it for too long.
    "plan_cache_mode": "force_generic_plan",
    "join_collapse_limit": "1",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "enable_memoize": "off",
    "jit": "off",
}

_SCHEMA_NAME = re.compile(r"\bclepsydra\b")


def in_schema(text: str, schema: str) -> str:
    """A text of SQL, which is written for the schema clepsydra, for another schema.

    >>> in_schema("SELECT count(*) FROM clepsydra.shard_locks", "timers")
    'SELECT count(*) FROM "timers".shard_locks'
    """
    return _SCHEMA_NAME.sub(f'"{schema}"', text)


@cache
def statements(schema: str) -> Statements:
    """The named statements for an installation in this schema."""
    return Statements.of_package("clepsydra.store.postgres", ".sql", lambda text: in_schema(text, schema))


async def connect(address: Address) -> asyncpg.Connection:
    """A connection of its own, beside the pool."""
    return await asyncpg.connect(address.dsn, **_arguments(address))


async def make_pool(address: Address) -> asyncpg.Pool:
    """Connections on demand: none is opened before it is needed, and those that break are replaced."""
    return await asyncpg.create_pool(
        address.dsn,
        min_size=0,
        max_size=address.pool_size,
        max_inactive_connection_lifetime=300,
        # The statements are always the same few: none is forgotten and prepared anew in the midst of work.
        max_cached_statement_lifetime=0,
        init=partial(_meet_arrays, statements(address.schema)["meet_arrays"]),
        # Each statement is a transaction of its own, so there is nothing to reset, and a round trip is saved.
        reset=_leave_as_it_is,
        **_arguments(address),
    )


def _arguments(address: Address) -> dict[str, Any]:
    return {
        **address.arguments,
        "timeout": address.connect_timeout_s,
        "command_timeout": ANSWER_TIMEOUT_S,
        "server_settings": {**SETTINGS, **address.settings},
    }


async def _meet_arrays(statement: str, connection: asyncpg.Connection) -> None:
    """Have the driver ask for their types now, which takes it 10 ms or more, and not when an attempt is to begin."""
    await connection.fetch(statement, [], [])


async def _leave_as_it_is(_connection: object) -> None:
    pass
