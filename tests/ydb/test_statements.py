"""The rules for statements (see sql/put.yql), proven from the statements themselves."""

import os
import random
import re
from collections.abc import AsyncIterator, Callable

import pytest

from clepsydra.core.ids import Ids
from clepsydra.schema import migrations
from clepsydra.store.ydb.connection.sessions import STATEMENTS, texts_in
from clepsydra.store.ydb.installation import partitioning
from clepsydra.store.ydb.parameters import id_hash
from clepsydra.store.ydb.url import parse_url
from tests.conformance.worlds import ODD_IDS, World
from tests.ydb.installations import Installation
from tests.ydb.plans import Plan, broken_rules, explain
from tests.ydb.sample_installation import open_store, running_endpoint
from tests.ydb_endpoint import Engine
from tests.ydb_endpoint.endpoint import DATABASE
from tests.ydb_endpoint.runtime.access import Way
from tests.ydb_endpoint.runtime.compilation import CompiledText, Effect, compiled_text
from tests.ydb_endpoint.scheme import change_schema, make_directory
from tests.ydb_endpoint.storage import Database
from tests.ydb_endpoint.yql.lexer import TEXT_BYTES
from tests.ydb_endpoint.yql.parser import parse

PATH = f"{DATABASE}/clepsydra"
TEXTS = texts_in(PATH)
WRITES = [
    "put",
    "acquire",
    "heartbeat",
    "release",
    "migrate",
    "drop",
    "advance_in_processing",
    "advance_from_incoming",
]
# Deletes without reading anything.
BLIND = "drop"
# Sent by `clepsydra init` only. The first one is meant to fail if its rows exist.
INSTALLS = ["install_locks", "record_migrations"]


@pytest.fixture(scope="module")
def database() -> Database:
    database = Database(DATABASE)
    make_directory(database, PATH)
    for text in migrations("ydb"):
        filled = f'PRAGMA TablePathPrefix("{PATH}");' + text.format_map(partitioning(4))
        for change in compiled_text(filled, database).schema:
            change_schema(database, change)
    return database


def compiled(name: str, database: Database) -> CompiledText:
    return compiled_text(TEXTS[name], database)


def test_every_statement_that_writes_is_listed_above(database: Database) -> None:
    writing = [name for name in STATEMENTS if compiled(name, database).effects]
    assert sorted(writing) == sorted(WRITES + INSTALLS)


@pytest.mark.parametrize("name", WRITES + INSTALLS)
def test_a_text_that_writes_reads_rows_by_their_whole_keys_only(name: str, database: Database) -> None:
    assert {read.way for read in compiled(name, database).reads} <= {Way.LOOKUP}


@pytest.mark.parametrize("name", [name for name in WRITES if name != BLIND])
def test_a_text_that_writes_selects_once_and_then_writes_without_reading(name: str, database: Database) -> None:
    first, *rest = compiled(name, database).steps
    assert not isinstance(first, Effect)
    assert rest
    for step in rest:
        assert isinstance(step, Effect)
        assert step.verb in ("UPSERT", "REPLACE", "DELETE")


@pytest.mark.parametrize("name", WRITES)
def test_no_writing_statement_depends_on_the_clock(name: str) -> None:
    """A condition on the clock is an assertion that fails the whole text, and never half of it."""
    statements = TEXTS[name].split(";")
    writing = [text for text in statements if re.search(r"^(UPSERT|REPLACE|DELETE)\b", text.strip(), re.MULTILINE)]
    named = [text for text in statements if text.strip().startswith("$")]
    assert writing
    assert not any("CurrentUtc" in text for text in writing + named)


def test_a_put_writes_each_table_in_one_statement(database: Database) -> None:
    tables = [effect.table.path for effect in compiled("put", database).effects]
    assert len(tables) == len(set(tables)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "DECLARE $s AS Uint64; $q = (SELECT shard_id, created_at, action_id, action_guid FROM incoming_queue "
        "WHERE shard_id = $s); DELETE FROM incoming_queue ON SELECT shard_id, created_at, action_id, action_guid "
        "FROM $q;",
        "DECLARE $s AS Uint64; UPSERT INTO shard_locks SELECT shard_id, false AS locked FROM shard_locks "
        "WHERE shard_id >= $s;",
        "UPSERT INTO shard_locks SELECT shard_id, false AS locked FROM shard_locks;",
    ],
)
def test_a_range_in_a_text_that_writes_is_detected(text: str, database: Database) -> None:
    ways = {read.way for read in compiled_text(f'PRAGMA TablePathPrefix("{PATH}"); {text}', database).reads}
    assert ways & {Way.SCAN, Way.FULL_SCAN}


@pytest.mark.parametrize("name", list(STATEMENTS))
def test_a_text_fits_the_servers_limit(name: str) -> None:
    assert len(TEXTS[name].encode()) < TEXT_BYTES


@pytest.mark.parametrize("shards", [1, 2, 16, 256, 257, 1000, 100_000])
def test_the_schema_fits_the_servers_limit_for_any_number_of_shards(shards: int) -> None:
    for text in migrations("ydb"):
        filled = text.format_map(partitioning(shards))
        assert len(filled.encode()) + 500 < TEXT_BYTES
        assert parse(filled)


@pytest.mark.parametrize(("shards", "partitions"), [(1, 1), (2, 2), (16, 16), (256, 256), (257, 129), (1000, 250)])
def test_the_queues_are_split_at_the_boundaries_of_shards(shards: int, partitions: int) -> None:
    filled = partitioning(shards)
    keys = [int(key) for key in re.findall(r"[0-9]+", filled["split_at_shards"])]
    assert len(keys) + 1 == partitions == int(filled["queue_partitions"])
    assert keys == sorted(set(keys))
    assert all(0 < key < shards for key in keys)


async def test_the_hash_is_the_same_in_yql_and_in_python() -> None:
    hashed = re.search(r"Unwrap\(FromBytes.*?Uint64\)\)", STATEMENTS["due"])
    assert hashed is not None
    text = f"DECLARE $ids AS List<Struct<action_id: Utf8>>; SELECT {hashed[0]} AS id_hash FROM AS_TABLE($ids);"
    parameters = {"$ids": [{"action_id": action_id} for action_id in ODD_IDS]}
    engine = Engine(DATABASE)
    [result] = await engine.run(text, parameters, engine.database.begin(is_serializable=False))
    assert [row["id_hash"] for row in result.rows] == [id_hash(action_id) for action_id in ODD_IDS]


@pytest.fixture
async def plans() -> AsyncIterator[dict[str, Plan]]:
    """On the endpoint the plans are its own. On a real server they are the real planner's."""
    installation = Installation()
    await installation.install(4)
    try:
        yield await explain(parse_url(installation.url), os.environ)
    finally:
        await installation.close()


async def test_every_text_reads_as_it_should(
    plans: dict[str, Plan], record_property: Callable[[str, object], None]
) -> None:
    assert sorted(plans) == sorted(STATEMENTS)
    for name, (reads, writes) in plans.items():
        shown = [f"{read.table} {read.way}{' limited' if read.is_limited else ''}" for read in reads]
        record_property("plan", {"name": name, "reads": shown, "writes": [" ".join(write) for write in writes]})
    broken = [
        sentence
        for name, plan in plans.items()
        for sentence in broken_rules(name, plan, writes=name in WRITES + INSTALLS)
    ]
    assert broken == []
    # Texts that read nothing prove nothing.
    reading = {name for name, plan in plans.items() if plan.reads}
    assert set(STATEMENTS) - reading <= {"drop", "now", "install_locks", "server_version"}


@pytest.mark.parametrize("name", ["get", "due", "stale", "current_of_late", "put", "migrate", "heartbeat"])
def test_without_the_pragma_a_join_could_read_the_whole_table(name: str, database: Database) -> None:
    """The optimiser of a server goes by its estimates, unless the text says that it prefers lookups."""
    pragma = re.compile(r"^PRAGMA ydb\.CostBasedOptimizationLevel.*$", re.MULTILINE)
    text, removed = pragma.subn("", TEXTS[name])
    assert removed == 1
    assert Way.FULL_SCAN in {read.way for read in compiled_text(text, database).reads}


async def test_a_limit_over_a_computed_column_is_detected(database: Database) -> None:
    text = (
        "DECLARE $limit AS Uint64; SELECT shard_id, {} FROM incoming_queue WHERE shard_id = $limit "
        "ORDER BY shard_id LIMIT $limit;"
    )
    for column, is_limited in (("created_at", True), ("CAST(action_id AS String) AS id", False)):
        filled = f'PRAGMA TablePathPrefix("{PATH}"); {text.format(column)}'
        [read] = compiled_text(filled, database).reads
        assert read.is_limited is is_limited


@pytest.mark.parametrize("limit", [1, 7])
async def test_a_page_of_a_long_backlog_reads_no_more_rows_than_it_returns(limit: int) -> None:
    async with running_endpoint() as endpoint, open_store(endpoint) as store:
        world = World(store, store, await store.now(), Ids(random.Random(1)))
        await world.carry_out(*(world.create(f"a{n}", world.at(n)) for n in range(60)))
        rows = [entry.row for entry in (await world.page(0)).incoming]
        await world.migrate(*rows[:30])
        endpoint.engine.rows_read = 0
        page = await store.due(
            0, incoming_from_us=0, incoming_limit=limit, from_us=0, until_us=world.at(900), limit=limit
        )
        assert (len(page.incoming), len(page.due)) == (limit, limit)
        assert endpoint.engine.rows_read == 2 * limit
        endpoint.engine.rows_read = 0
        # One row more than wanted shows whether there is a next page.
        assert (await store.stale(0, None, 0, limit)).seen == limit
        assert endpoint.engine.rows_read == limit + 1
