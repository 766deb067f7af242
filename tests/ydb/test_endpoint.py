"""Tests of the endpoint: it must show the faults that the other tests look for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import ydb
from ydb.aio.query import QuerySessionPool

from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.url import parse_url
from tests.ydb_endpoint import Endpoint, Engine, Evaluation
from tests.ydb_endpoint.endpoint import DATABASE
from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.storage import Database, Table
from tests.ydb_endpoint.yql.types import UINT64, UTF8, Maybe

PREFIX = 'PRAGMA TablePathPrefix("/local");\n'
UPSERTS = (
    "DECLARE $id AS Uint64; DECLARE $name AS Utf8; UPSERT INTO things SELECT $id AS id, $name AS name;",
    "DECLARE $id AS Uint64; DECLARE $note AS Utf8; UPSERT INTO things SELECT $id AS id, $note AS note;",
)


@asynccontextmanager
async def session_pool(evaluation: Evaluation = Evaluation.EACH_USE) -> AsyncIterator[QuerySessionPool]:
    async with Endpoint(Engine(DATABASE, evaluation=evaluation)) as endpoint:
        driver = await connect(parse_url(endpoint.url()), {})
        async with QuerySessionPool(driver) as pool:
            await run(pool, "CREATE TABLE things (id Uint64 NOT NULL, name Utf8, note Utf8, PRIMARY KEY (id));")
            yield pool
        await driver.stop()


async def run(pool: QuerySessionPool, text: str, **values: Any) -> list[Any]:
    kinds = {int: ydb.PrimitiveType.Uint64, str: ydb.PrimitiveType.Utf8}
    sent = {f"${name}": (value, kinds[type(value)]) for name, value in values.items()}
    once = ydb.RetrySettings(max_retries=0)
    results = await pool.execute_with_retries(PREFIX + text, sent, retry_settings=once)
    return [dict(row) for result in results for row in result.rows]


async def all_rows(pool: QuerySessionPool) -> list[tuple[int, str, str]]:
    rows = await run(pool, "SELECT id, name, note FROM things ORDER BY id;")
    return [(row["id"], row["name"], row["note"]) for row in rows]


@pytest.mark.parametrize(
    ("evaluation", "rows"), [(Evaluation.ONCE, [(1, "new", "moved")]), (Evaluation.EACH_USE, [(1, "new", None)])]
)
async def test_a_text_can_depend_on_how_often_a_named_expression_is_evaluated(
    evaluation: Evaluation, rows: list[Any]
) -> None:
    """The second statement of this text depends on what the first one changes."""
    async with session_pool(evaluation) as pool:
        await run(pool, UPSERTS[0], id=1, name="old")
        await run(
            pool,
            'DECLARE $id AS Uint64; $old = (SELECT id FROM things WHERE id = $id AND name = "old"u);'
            'UPSERT INTO things SELECT id, "new"u AS name FROM $old;'
            'UPSERT INTO things SELECT id, "moved"u AS note FROM $old;',
            id=1,
        )
        assert await all_rows(pool) == rows


async def test_a_snapshot_does_not_change() -> None:
    async with session_pool() as pool, pool.checkout() as session:
        await run(pool, UPSERTS[0], id=1, name="before")
        snapshot = session.transaction(ydb.QuerySnapshotReadOnly())

        async def seen() -> list[str]:
            text = PREFIX + "SELECT name FROM things ORDER BY name;"
            return [row["name"] async for part in await snapshot.execute(text) for row in part.rows]

        assert await seen() == ["before"]
        await run(pool, UPSERTS[0], id=1, name="after")
        await run(pool, UPSERTS[0], id=2, name="another")
        assert await seen() == ["before"]
        await snapshot.commit()
        assert [name for _, name, _ in await all_rows(pool)] == ["after", "another"]


async def test_a_text_fails_as_a_whole() -> None:
    async with session_pool() as pool:
        with pytest.raises(ydb.issues.PreconditionFailed, match="Condition violated: no"):
            await run(
                pool,
                "DECLARE $id AS Uint64; DECLARE $name AS Utf8;"
                "UPSERT INTO things SELECT $id AS id, $name AS name;"
                'SELECT Ensure($id, false, "no") AS id;',
                id=1,
                name="never",
            )
        assert await all_rows(pool) == []


@pytest.fixture
def table() -> Table:
    return Table("/local/things", {"id": UINT64, "name": Maybe(UTF8), "note": Maybe(UTF8)}, ("id",), {})


@pytest.fixture
def database(table: Table) -> Database:
    database = Database("/local")
    database.tables[table.path] = table
    first = database.begin(is_serializable=True)
    for number in (1, 2, 3):
        first.replace(table, (number,), {"id": number, "name": "first", "note": None})
    first.commit()
    return database


def commit_change(database: Database, table: Table, number: int) -> None:
    other = database.begin(is_serializable=True)
    other.upsert(table, (number,), {"id": number, "name": "other"})
    other.commit()


@pytest.mark.parametrize(("read", "changed", "is_aborted"), [(1, 1, True), (1, 2, False), (9, 9, True)])
def test_a_change_of_a_row_that_was_read_aborts(
    database: Database, table: Table, read: int, changed: int, is_aborted: bool
) -> None:
    mine = database.begin(is_serializable=True)
    mine.get(table, (read,))
    mine.upsert(table, (3,), {"id": 3, "note": "mine"})
    commit_change(database, table, changed)
    if is_aborted:
        with pytest.raises(Refused) as caught:
            mine.commit()
        assert caught.value.status is Status.ABORTED
    else:
        mine.commit()
    assert (table.row_at((3,), database.commits) or {})["note"] == (None if is_aborted else "mine")


@pytest.mark.parametrize(("changed", "is_aborted"), [(2, True), (4, True), (9, False)])
def test_a_change_in_a_range_that_was_read_aborts_even_if_it_is_a_new_row(
    database: Database, table: Table, changed: int, is_aborted: bool
) -> None:
    mine = database.begin(is_serializable=True)
    assert [row["id"] for row in mine.scan(table, (2,), (5,))] == [2, 3]
    mine.upsert(table, (1,), {"id": 1, "note": "mine"})
    commit_change(database, table, changed)
    if is_aborted:
        with pytest.raises(Refused):
            mine.commit()
    else:
        mine.commit()


def test_a_write_without_a_read_conflicts_with_nothing_and_keeps_other_columns(
    database: Database, table: Table
) -> None:
    mine = database.begin(is_serializable=True)
    mine.upsert(table, (1,), {"id": 1, "note": "mine"})
    commit_change(database, table, 1)
    mine.commit()
    assert table.row_at((1,), database.commits) == {"id": 1, "name": "other", "note": "mine"}


def test_a_transaction_that_only_reads_is_never_aborted(database: Database, table: Table) -> None:
    mine = database.begin(is_serializable=True)
    mine.get(table, (1,))
    commit_change(database, table, 1)
    mine.commit()


def test_deleted_rows_are_forgotten_when_no_snapshot_can_see_them(database: Database, table: Table) -> None:
    snapshot = database.begin(is_serializable=False)
    removal = database.begin(is_serializable=True)
    removal.replace(table, (1,), None)
    removal.commit()
    database.forget_deleted_rows()
    assert snapshot.get(table, (1,)) is not None
    snapshot.end()
    database.forget_deleted_rows()
    assert table.keys == [(2,), (3,)]
