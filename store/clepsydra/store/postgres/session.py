"""How a session is opened: its settings, its timeouts, and the statements of its installation."""

import re
from functools import cache, partial
from typing import Any

import asyncpg

from clepsydra.store.postgres.url import PostgresUrl
from clepsydra.store.statements import Statements

# A statement that the server has cancelled was certainly not done. So the server gives up before the driver does.
LOCK_TIMEOUT_S = 3
STATEMENT_TIMEOUT_S = 5
RESPONSE_TIMEOUT_S = 7

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
    # One plan is right for every statement here, at any size of table and batch: lookups by key in nested loops. Each
    # session makes it once. The planner would choose another plan whenever a queue happens to be empty, and keep it
    # when the queue is full.
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
    """SQL for this schema, from a text that is written for the schema clepsydra.

    >>> in_schema("SELECT count(*) FROM clepsydra.shard_locks", "timers")
    'SELECT count(*) FROM "timers".shard_locks'
    """
    return _SCHEMA_NAME.sub(f'"{schema}"', text)


@cache
def statements(schema: str) -> Statements:
    """The named statements for an installation in this schema."""
    return Statements.of_package("clepsydra.store.postgres", ".sql", lambda text: in_schema(text, schema))


async def connect(url: PostgresUrl) -> asyncpg.Connection:
    """A connection that does not belong to the pool."""
    return await asyncpg.connect(url.dsn, **_arguments(url))


async def make_pool(url: PostgresUrl) -> asyncpg.Pool:
    """A pool that opens a connection when one is needed, and replaces those that break."""
    return await asyncpg.create_pool(
        url.dsn,
        min_size=0,
        max_size=url.pool_size,
        max_inactive_connection_lifetime=300,
        # There are few statements, and each stays prepared for as long as its session lives.
        max_cached_statement_lifetime=0,
        init=partial(_load_array_types, statements(url.schema)["load_array_types"]),
        # Each statement is a transaction of its own, so there is nothing to reset, and a round trip is saved.
        reset=_reset_nothing,
        **_arguments(url),
    )


def _arguments(url: PostgresUrl) -> dict[str, Any]:
    return {
        **url.arguments,
        "timeout": url.connect_timeout_s,
        "command_timeout": RESPONSE_TIMEOUT_S,
        "server_settings": {**SETTINGS, **url.settings},
    }


async def _load_array_types(statement: str, connection: asyncpg.Connection) -> None:
    """The driver needs 10 ms or more to learn about a type: it does so now, not when an attempt is to begin."""
    await connection.fetch(statement, [], [])


async def _reset_nothing(_connection: object) -> None:
    pass
