"""The server's plans of the store's texts, and the rules that they must keep."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ydb
from ydb.aio.query import QuerySessionPool

from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.sessions import texts_in
from clepsydra.store.ydb.url import Location

LOOKUPS = ("Lookup", "MultiLookup")
# They count all rows of a table, and nobody waits for them.
FULL_SCANS = ("stats", "states", "count_locks")
# They go through all actions, page by page.
LISTS = ("list_actions", "audit_actions")
# A page of these must end at its limit, however long the backlog is.
PAGES = ("due", "stale", "load_incoming", "load_processing")


class Read(NamedTuple):
    table: str
    way: str
    is_limited: bool


class Plan(NamedTuple):
    """How a text reads and writes its tables, as the server says."""

    reads: list[Read]
    writes: list[tuple[str, str]]


async def explain(location: Location, environment: Mapping[str, str]) -> dict[str, Plan]:
    """Ask the server for the plan of every text of the store."""
    driver = await connect(location, environment)
    try:
        async with QuerySessionPool(driver) as pool:
            return {name: _plan(await _explained(pool, text)) for name, text in texts_in(location.path).items()}
    finally:
        await driver.stop()


async def _explained(pool: QuerySessionPool, text: str) -> str:
    plan = await pool.explain_with_retries(text, retry_settings=ydb.RetrySettings(max_retries=3))
    assert isinstance(plan, str)
    return plan


def _plan(text: str) -> Plan:
    tables = json.loads(text).get("tables", [])
    return Plan(
        [Read(_name(table), read["type"], "limit" in read) for table in tables for read in table.get("reads", [])],
        [(_name(table), write["type"]) for table in tables for write in table.get("writes", [])],
    )


def _name(table: Mapping[str, Any]) -> str:
    return str(table["name"]).rpartition("/")[2]


def broken_rules(name: str, plan: Plan, *, writes: bool) -> Iterator[str]:
    """What is wrong with the plan of a text, in sentences."""
    for read in plan.reads:
        if read.way == "FullScan" and name not in FULL_SCANS:
            yield f"{name} reads all of {read.table}"
        if read.table == "scheduled_actions" and read.way not in LOOKUPS and name not in (*FULL_SCANS, *LISTS):
            yield f"{name} reads scheduled_actions by {read.way}, and not by Lookup"
        if writes and read.way not in LOOKUPS:
            yield f"{name} writes, and reads a range of {read.table}"
        if name in PAGES and read.way == "Scan" and not read.is_limited:
            yield f"{name} reads {read.table} beyond its limit"
