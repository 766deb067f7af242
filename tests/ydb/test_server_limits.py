"""The endpoint has the limits of a YDB server, and the store lives within them."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import ydb
from ydb.aio.query import QuerySessionPool

from clepsydra.core.ids import Ids
from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.times import HOUR_US
from clepsydra.store.errors import Unavailable
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.url import parse_url
from tests.conformance.worlds import DONE, World
from tests.ydb.sample_installation import SHARDS, SHORT_RETRY, open_store, running_endpoint, sample_installation
from tests.ydb_endpoint import Endpoint, Engine
from tests.ydb_endpoint.endpoint import DATABASE
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, streamed
from tests.ydb_endpoint.limits import Rights, ServerLimits
from tests.ydb_endpoint.scheme import make_directory

PREFIX = 'PRAGMA TablePathPrefix("/local");\n'
TABLE = "CREATE TABLE things (id Utf8 NOT NULL, payload String, PRIMARY KEY (id));"
WRITE = "DECLARE $id AS Utf8; DECLARE $payload AS String; UPSERT INTO things SELECT $id AS id, $payload AS payload;"
READ_AND_WRITE = (
    "DECLARE $id AS Utf8; $found = (SELECT id, payload FROM things WHERE id = $id);"
    'SELECT id FROM $found; UPSERT INTO things SELECT id, "new" AS payload FROM $found;'
)


@asynccontextmanager
async def session_pool(endpoint: Endpoint) -> AsyncIterator[QuerySessionPool]:
    driver = await connect(parse_url(endpoint.url()), {})
    async with QuerySessionPool(driver) as pool:
        yield pool
    await driver.stop()


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    limits = ServerLimits(parameter_bytes=10_000, key_bytes=100, value_bytes=1000, sessions=3)
    async with Endpoint(Engine(DATABASE, limits=limits)) as running:
        yield running


@pytest.fixture
async def pool(endpoint: Endpoint) -> AsyncIterator[QuerySessionPool]:
    async with session_pool(endpoint) as pool:
        await run(pool, TABLE)
        yield pool


async def run(pool: QuerySessionPool, text: str, **values: Any) -> list[Any]:
    kinds: dict[type, Any] = {bytes: ydb.PrimitiveType.String, str: ydb.PrimitiveType.Utf8}
    sent = {f"${name}": (value, kinds[type(value)]) for name, value in values.items()}
    once = ydb.RetrySettings(max_retries=0)
    results = await pool.execute_with_retries(PREFIX + text, sent, retry_settings=once)
    return [dict(row) for result in results for row in result.rows]


# Sizes.


@pytest.mark.parametrize(
    ("name", "payload", "message"),
    [("a", bytes(20_000), "Parameters of"), ("a" * 101, b"", "Row key size"), ("a", bytes(1001), "Row cell size")],
)
async def test_what_is_too_large_is_refused(pool: QuerySessionPool, name: str, payload: bytes, message: str) -> None:
    with pytest.raises(ydb.issues.BadRequest, match=message):
        await run(pool, WRITE, id=name, payload=payload)
    await run(pool, WRITE, id="a" * 100, payload=bytes(1000))


async def test_the_store_cuts_a_batch_to_what_a_server_accepts() -> None:
    """Some actions with the largest payloads: more than a server takes, or holds between two phases."""
    async with running_endpoint() as endpoint, open_store(endpoint) as store:
        world = World(store, store, await store.now(), Ids(random.Random(1)))
        puts = [world.create(f"a{n}") for n in range(210)]
        large = [put._replace(action=put.action._replace(spec=bytes(PAYLOAD_BYTES))) for put in puts]
        assert sum(len(put.action.spec) for put in large) > endpoint.engine.limits.parameter_bytes
        assert await store.put(large) == [DONE] * len(large)
        changes = [world.change(put.action) for put in large]
        assert await store.put(changes) == [DONE] * len(changes)
        await world.assert_sound(actions=210, stale_rows=210)


# Sessions, transactions and snapshots.


async def test_no_more_sessions_than_a_node_has(endpoint: Endpoint, pool: QuerySessionPool) -> None:
    async with session_pool(endpoint) as other, pool.checkout(), pool.checkout(), pool.checkout():
        with pytest.raises(ydb.issues.Overloaded, match="sessions limit"):
            await run(other, "SELECT CurrentUtcTimestamp() AS store_now;")


async def test_a_store_that_gets_no_session_is_unavailable() -> None:
    async with running_endpoint() as endpoint, open_store(endpoint, SHORT_RETRY) as store:
        endpoint.engine.limits.sessions = 0
        for session_id in list(endpoint.engine.sessions):
            endpoint.engine.delete_session(session_id)
        with pytest.raises(Unavailable, match="sessions limit exceeded"):
            await store.now()
        endpoint.engine.limits.sessions = 10
        assert await store.now() > 0


async def test_sessions_that_were_idle_for_long_are_replaced() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        before = set(endpoint.engine.sessions)
        clock = endpoint.engine.clock
        endpoint.engine.clock = lambda: clock() + HOUR_US
        assert await sample.store.now() > sample.world.now_us
        assert set(endpoint.engine.sessions) - before


@pytest.mark.parametrize("limit", ["transaction_idle_us", "snapshot_life_us"])
async def test_an_audit_that_outlives_its_snapshot_is_unavailable(limit: str) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        setattr(endpoint.engine.limits, limit, -1)
        with pytest.raises(Unavailable, match=r"Transaction not found|snapshot is too old"):
            await sample.store.audit(10)


# Transactions that fail late.


async def test_rows_may_be_followed_by_an_error(endpoint: Endpoint, pool: QuerySessionPool) -> None:
    await run(pool, WRITE, id="a", payload=b"old")
    endpoint.faults.plan(streamed(Status.ABORTED))
    async with pool.checkout() as session:
        parameters = {"$id": ("a", ydb.PrimitiveType.Utf8)}
        stream = await session.execute(PREFIX + READ_AND_WRITE, parameters)
        assert [row["id"] for row in (await stream.next()).rows] == ["a"]
        with pytest.raises(ydb.issues.Aborted):
            await stream.next()
    assert await run(pool, "SELECT payload FROM things;") == [{"payload": b"old"}]


@pytest.mark.parametrize("path", ["/local/things", "/local/others"])
async def test_a_restart_of_a_partition_aborts_those_who_have_read_it(
    endpoint: Endpoint, pool: QuerySessionPool, path: str
) -> None:
    await run(pool, WRITE, id="a", payload=b"old")
    table = endpoint.engine.database.tables["/local/things"]
    mine = endpoint.engine.database.begin(is_serializable=True)
    mine.get(table, ("a",))
    mine.upsert(table, ("b",), {"id": "b"})
    endpoint.engine.database.restart_partitions(path)
    if path == table.path:
        with pytest.raises(Exception, match="locks invalidated"):
            mine.commit()
    else:
        mine.commit()


async def test_a_write_that_reads_nothing_has_no_locks_to_lose(endpoint: Endpoint, pool: QuerySessionPool) -> None:
    endpoint.faults.plan(Fault(Kind.LOSE_LOCKS))
    await run(pool, WRITE, id="a", payload=b"new")
    endpoint.faults.plan(Fault(Kind.LOSE_LOCKS))
    with pytest.raises(ydb.issues.Aborted):
        await run(pool, READ_AND_WRITE, id="a")


# The schema.


async def test_ddl_is_refused_inside_a_transaction(pool: QuerySessionPool) -> None:
    async with pool.checkout() as session:
        transaction = session.transaction(ydb.QuerySerializableReadWrite())
        with pytest.raises(ydb.issues.BadRequest, match="inside transaction"):
            async for _ in await transaction.execute(PREFIX + TABLE.replace("things", "others"), commit_tx=True):
                pass


async def test_only_a_number_can_be_split_uniformly(pool: QuerySessionPool) -> None:
    with pytest.raises(ydb.issues.GenericError, match="begins with Utf8"):
        await run(pool, "CREATE TABLE others (id Utf8 NOT NULL, PRIMARY KEY (id)) WITH (UNIFORM_PARTITIONS = 4);")


async def test_a_table_that_is_being_made_can_neither_be_used_nor_made_again() -> None:
    async with Endpoint() as endpoint, session_pool(endpoint) as pool:
        await run(pool, TABLE)
        endpoint.engine.database.unfinished.add("/local/things")
        endpoint.engine.database.schema_version += 1
        with pytest.raises(ydb.issues.Overloaded, match="under creation"):
            await run(pool, TABLE.replace("TABLE", "TABLE IF NOT EXISTS"))
        with pytest.raises(ydb.issues.SchemeError, match="Cannot find table"):
            await run(pool, "SELECT id FROM things;")


async def test_a_schema_error_is_nested_in_what_the_server_was_doing(pool: QuerySessionPool) -> None:
    with pytest.raises(ydb.issues.SchemeError) as caught:
        await run(pool, "SELECT id FROM others;")
    [outermost] = caught.value.issues or ()
    assert outermost.message == "Type annotation"
    assert "Cannot find table" in outermost.issues[0].issues[0].message


# Rights.


async def test_a_directory_needs_a_right_on_the_one_above_it_even_if_it_exists() -> None:
    async with Endpoint() as endpoint:
        make_directory(endpoint.engine.database, "/local/team")
        endpoint.engine.database.rights = Rights("/local/team")
        driver = await connect(parse_url(endpoint.url()), {})
        with pytest.raises(ydb.issues.Unauthorized):
            await driver.scheme_client.make_directory("/local/team")
        await driver.scheme_client.make_directory("/local/team/timers")
        await driver.stop()


# Everything at once.


@pytest.mark.parametrize("seed", range(3))
async def test_trouble_of_every_harmless_kind_changes_no_result(seed: int) -> None:
    async with running_endpoint(seed=seed) as endpoint, sample_installation(endpoint) as sample:
        endpoint.faults.trouble = 0.5
        for round_number in range(20):
            puts = [sample.world.create(f"a{round_number}-{n}", shard_id=n % SHARDS) for n in range(8)]
            await sample.call_both(lambda store, puts=puts: store.put(puts))  # type: ignore[misc]
        assert endpoint.faults.troubles
        endpoint.faults.trouble = 0.0
        await sample.check_equal()
