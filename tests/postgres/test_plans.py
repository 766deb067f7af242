"""Every hot statement is planned as lookups by key, whatever the planner believes about the tables.

A queue is empty one minute and long the next, and a session keeps the plan that it made first. So the worst case is
tested: plans that are made on tables that the server knows to be empty.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from clepsydra.store.postgres.session import SETTINGS, connect, statements
from clepsydra.store.postgres.url import parse_url
from tests.postgres.installations import Installation

# Statements, with the number of their parameters.
HOT = {
    "put": 12,
    "get": 1,
    "versions": 1,
    "list_actions": 2,
    "due": 8,
    "migrate": 7,
    "drop": 5,
    "begin_from_incoming": 7,
    "begin_in_processing": 7,
    "finish_in_processing": 12,
    "advance": 11,
    "stale_page": 5,
}

# A scan of a table; the line below it has the condition by which it finds its rows.
_SCAN = re.compile(r"(Seq|Index(?: Only)?|Bitmap Heap|Tid) Scan (?:using \w+ )?on (\w+)[^\n]*\n\s*([^\n]*)")
_PARTS_OF_KEY = {
    "scheduled_actions": ["meta_action_id_hash", "meta_action_id"],
    "incoming_queue": ["shard_id", "created_at"],
    "processing_queue": ["shard_id", "scheduled_at"],
}


async def plan_of(installation: Installation, name: str, options: str = "COSTS OFF") -> str:
    connection = await asyncpg.connect(installation.server, server_settings=SETTINGS)
    try:
        await connection.execute(f"PREPARE hot AS {statements(installation.schema)[name]}")
        nothing = ", ".join(["NULL"] * HOT[name])
        return "\n".join(line for (line,) in await connection.fetch(f"EXPLAIN ({options}) EXECUTE hot ({nothing})"))
    finally:
        await connection.close()


def parts_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from parts_of(part)


@pytest.mark.parametrize("state", ["never vacuumed", "known to be empty"])
@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_finds_its_rows_by_key(
    installation: Installation, operator: asyncpg.Connection, name: str, state: str
) -> None:
    if state == "known to be empty":
        for table in _PARTS_OF_KEY:
            await operator.execute(f"VACUUM ANALYZE {installation.schema}.{table}")
    plan = await plan_of(installation, name)
    scans = [scan for scan in _SCAN.findall(plan) if scan[1] in _PARTS_OF_KEY]
    assert scans, plan
    for kind, table, condition in scans:
        if kind == "Tid":
            assert condition.startswith("TID Cond: (ctid = "), plan
        else:
            assert kind in ("Index", "Index Only"), plan
            assert condition.startswith("Index Cond: "), plan
            assert all(part in condition for part in _PARTS_OF_KEY[table]), plan
    assert not re.search("Hash Join|Merge Join|Materialize|Memoize", plan), plan


@pytest.mark.parametrize("name", HOT)
async def test_no_statement_allocates_memory_by_the_size_of_a_table(
    installation: Installation, operator: asyncpg.Connection, name: str
) -> None:
    """Items that a statement has touched are looked up in a hash table, for which the planner must expect few rows."""
    schema = installation.schema
    await operator.execute(f"""
        INSERT INTO {schema}.scheduled_actions VALUES (0, 'a', '', 'g', '', '', 0);
        INSERT INTO {schema}.incoming_queue VALUES (0, 0, 'a', 'g', 0);
        INSERT INTO {schema}.processing_queue VALUES (0, 0, 'a', 'g', 0);
    """)
    for table in _PARTS_OF_KEY:
        # Each table has one page, and the server believes that it holds this many rows.
        oid = f"'{schema}.{table}'::regclass"
        await operator.execute(f"UPDATE pg_class SET relpages = 1, reltuples = 1e8 WHERE oid = {oid}")
    [explained] = json.loads(await plan_of(installation, name, "FORMAT JSON"))
    parts = list(parts_of(explained["Plan"]))
    assert max(part["Plan Rows"] for part in parts) > 1_000_000 or name not in ("advance", "migrate")
    subplans = [part for part in parts if part.get("Parent Relationship") == "SubPlan"]
    assert all(part["Plan Rows"] <= 1_000 for part in subplans), subplans
    looked_up = [part["Filter"] for part in parts if "SubPlan" in part.get("Filter", "")]
    assert all("hashed SubPlan" in condition for condition in looked_up), looked_up


async def test_the_sessions_of_a_store_have_these_settings(installation: Installation) -> None:
    """Otherwise the plans above would not be those of a store."""
    connection = await connect(parse_url(installation.url))
    try:
        for name in ("plan_cache_mode", "enable_seqscan", "join_collapse_limit", "synchronous_commit", "lock_timeout"):
            assert await connection.fetchval("SELECT current_setting($1)", name) == SETTINGS[name]
    finally:
        await connection.close()
