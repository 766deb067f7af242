"""The endpoint refuses what YDB refuses: a store that passes its tests here sends nothing that YDB would refuse."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import ydb
from ydb.aio.query import QuerySessionPool

from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.url import parse_url
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.faults import Fault, Kind

TABLE = (
    "CREATE TABLE things (id Uint64 NOT NULL, at Timestamp NOT NULL, name Utf8, payload String, PRIMARY KEY (id, at));"
)
PREFIX = 'PRAGMA TablePathPrefix("/local");\n'
ROWS = ydb.ListType(
    ydb.StructType()
    .add_member("id", ydb.PrimitiveType.Uint64)
    .add_member("at", ydb.PrimitiveType.Timestamp)
    .add_member("name", ydb.PrimitiveType.Utf8)
)
DECLARE_ROWS = "DECLARE $rows AS List<Struct<id: Uint64, at: Timestamp, name: Utf8>>;\n"
DECLARE_ID = "DECLARE $id AS Uint64;\n"
BY_ID = DECLARE_ID + "SELECT id, name FROM things WHERE id = $id;"


@pytest.fixture
async def pool() -> AsyncIterator[QuerySessionPool]:
    async with Endpoint() as endpoint:
        driver = await connect(parse_url(endpoint.url()), {})
        async with QuerySessionPool(driver) as pool:
            await run(pool, TABLE)
            yield pool
        await driver.stop()


async def run(pool: QuerySessionPool, text: str, parameters: dict[str, Any] | None = None) -> list[Any]:
    once = ydb.RetrySettings(max_retries=0)
    results = await pool.execute_with_retries(PREFIX + text, parameters, retry_settings=once)
    return [dict(row) for result in results for row in result.rows]


async def test_a_correct_text_is_accepted(pool: QuerySessionPool) -> None:
    rows = [{"id": 1, "at": 5, "name": "one"}, {"id": 2, "at": 6, "name": "two"}]
    await run(
        pool, DECLARE_ROWS + "INSERT INTO things SELECT id, at, name FROM AS_TABLE($rows);", {"$rows": (rows, ROWS)}
    )
    assert await run(pool, BY_ID, {"$id": (2, ydb.PrimitiveType.Uint64)}) == [{"id": 2, "name": "two"}]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2, ydb.PrimitiveType.Int64),
        (2, ydb.PrimitiveType.Uint32),
        ("2", ydb.PrimitiveType.Utf8),
        (2, ydb.OptionalType(ydb.PrimitiveType.Uint64)),
        ([2], ydb.ListType(ydb.PrimitiveType.Uint64)),
    ],
)
async def test_a_parameter_of_another_type_is_refused(pool: QuerySessionPool, value: Any, kind: Any) -> None:
    with pytest.raises(ydb.issues.BadRequest, match="type mismatch"):
        await run(pool, BY_ID, {"$id": (value, kind)})


async def test_a_plain_number_is_not_a_key(pool: QuerySessionPool) -> None:
    with pytest.raises(ydb.issues.BadRequest, match="actual: Int64"):
        await run(pool, BY_ID, {"$id": 2})


async def test_a_missing_parameter_is_refused(pool: QuerySessionPool) -> None:
    with pytest.raises(ydb.issues.BadRequest, match="Missing value"):
        await run(pool, BY_ID)


async def test_a_parameter_that_is_not_declared_is_refused(pool: QuerySessionPool) -> None:
    number = (2, ydb.PrimitiveType.Uint64)
    with pytest.raises(ydb.issues.BadRequest, match="declares no"):
        await run(pool, BY_ID, {"$id": number, "$other": number})


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SELECT id FROM nothing;", ydb.issues.SchemeError, "Cannot find table"),
        ("SELECT nonsense FROM things;", ydb.issues.GenericError, "Member not found"),
        ("SELECT id FROM things WHERE name = id;", ydb.issues.GenericError, "compare"),
        ('SELECT id FROM things WHERE name = "text";', ydb.issues.GenericError, "compare"),
        ('SELECT id FROM things WHERE payload = "text"u;', ydb.issues.GenericError, "compare"),
        ("SELECT id FROM things WHERE id;", ydb.issues.GenericError, "Bool"),
        ("SELECT id FROM things LIMIT 5;", ydb.issues.GenericError, "Uint64"),
        ("UPSERT INTO things SELECT id, name FROM things;", ydb.issues.GenericError, "Missing key column"),
        ("UPSERT INTO things SELECT id, at, name AS nonsense FROM things;", ydb.issues.GenericError, "No such column"),
        ("UPSERT INTO things SELECT id, at, payload AS name FROM things;", ydb.issues.GenericError, "convert"),
        ("UPSERT INTO things SELECT id, at, name AS payload FROM things;", ydb.issues.GenericError, "convert"),
        ("UPDATE things SET name = name;", ydb.issues.GenericError, "does not know"),
        ("DELETE FROM things WHERE id = id;", ydb.issues.GenericError, "expected ON"),
        ("SELECT Magic(id) AS id FROM things;", ydb.issues.GenericError, "Unknown builtin"),
        ("SELECT $id AS id;", ydb.issues.GenericError, "Unknown name"),
        ("SELECT FROM things;", ydb.issues.GenericError, "expected"),
        (TABLE + "SELECT id FROM things;", ydb.issues.GenericError, "mixed"),
        ("SELECT id FROM things; -- " + "x" * 10_240 + "\n", ydb.issues.BadRequest, "longer"),
    ],
)
async def test_a_wrong_text_is_refused(pool: QuerySessionPool, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        await run(pool, text)


async def test_an_optional_value_is_no_key(pool: QuerySessionPool) -> None:
    text = "DECLARE $id AS Optional<Uint64>; DECLARE $at AS Timestamp; UPSERT INTO things SELECT $id AS id, $at AS at;"
    kind = ydb.OptionalType(ydb.PrimitiveType.Uint64)
    with pytest.raises(ydb.issues.GenericError, match="convert"):
        await run(pool, text, {"$id": (1, kind), "$at": (1, ydb.PrimitiveType.Timestamp)})


async def test_text_where_bytes_are_wanted_is_refused(pool: QuerySessionPool) -> None:
    text = "DECLARE $payload AS String; SELECT id FROM things WHERE payload = $payload;"
    assert await run(pool, text, {"$payload": b"bytes"}) == []
    with pytest.raises(ydb.issues.BadRequest, match="expected: String, actual: Utf8"):
        await run(pool, text, {"$payload": "text"})


async def test_an_insert_on_an_existing_key_is_refused_as_a_whole(pool: QuerySessionPool) -> None:
    text = DECLARE_ROWS + "INSERT INTO things SELECT id, at, name FROM AS_TABLE($rows);"
    await run(pool, text, {"$rows": ([{"id": 1, "at": 1, "name": "first"}], ROWS)})
    more = [{"id": 2, "at": 1, "name": "new"}, {"id": 1, "at": 1, "name": "second"}]
    with pytest.raises(ydb.issues.PreconditionFailed, match="existing key"):
        await run(pool, text, {"$rows": (more, ROWS)})
    assert await run(pool, "SELECT id, name FROM things;") == [{"id": 1, "name": "first"}]


async def test_a_snapshot_takes_no_writes(pool: QuerySessionPool) -> None:
    async with pool.checkout() as session:
        transaction = session.transaction(ydb.QuerySnapshotReadOnly())
        text = PREFIX + "DELETE FROM things ON SELECT id, at FROM things;"
        await run(
            pool,
            DECLARE_ROWS + "INSERT INTO things SELECT id, at, name FROM AS_TABLE($rows);",
            {"$rows": ([{"id": 1, "at": 1, "name": "first"}], ROWS)},
        )
        with pytest.raises(ydb.issues.GenericError, match="read only"):
            async for _ in await transaction.execute(text, commit_tx=True):
                pass


async def test_a_time_beyond_the_type_is_refused(pool: QuerySessionPool) -> None:
    text = "DECLARE $at AS Timestamp; SELECT id FROM things WHERE at = $at;"
    with pytest.raises(ydb.issues.BadRequest, match="no Timestamp"):
        await run(pool, text, {"$at": (2**63, ydb.PrimitiveType.Timestamp)})


async def test_a_session_executes_one_text_at_a_time() -> None:
    text = "SELECT CurrentUtcTimestamp() AS store_now;"
    async with Endpoint() as endpoint:
        driver = await connect(parse_url(endpoint.url()), {})
        async with QuerySessionPool(driver) as pool, pool.checkout() as session:
            begun = asyncio.Event()
            endpoint.faults.plan(Fault(Kind.SLOW))
            endpoint.faults.interruptions[""] = begun.set
            first = await session.execute(text)
            response = asyncio.ensure_future(first.next())
            await begun.wait()
            second = await session.execute(text)
            with pytest.raises(ydb.issues.SessionBusy):
                await second.next()
            endpoint.faults.release_slow.set()
            assert (await response).rows
        await driver.stop()
