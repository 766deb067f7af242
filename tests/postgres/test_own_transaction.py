"""An application creates an action inside its own transaction: both are committed, or neither is."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from clepsydra.core.times import us_of
from clepsydra.scheduler.errors import AlreadyExists, InvalidArgument
from clepsydra.scheduler.transactional import create_in_postgres
from clepsydra.store.errors import Unusable, WrongUrl
from clepsydra.store.port import Store
from clepsydra.store.postgres import PostgresStore
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import ScheduledAction
from tests.conformance.worlds import World
from tests.postgres.installations import Installation

LONG_S = 20


@pytest.fixture
async def application(installation: Installation) -> AsyncIterator[asyncpg.Connection]:
    """A connection of an application that has a table of its own in the same database."""
    connection = await installation.connect()
    await connection.execute(f"CREATE TABLE {installation.schema}.orders (id int PRIMARY KEY)")
    yield connection
    await connection.close()


def reminder(action_id: str = "remind-1") -> ScheduledAction:
    action = ScheduledAction()
    action.meta.id = action_id
    action.spec.schedule.delay.seconds = 3600
    action.spec.http.url = "https://shop.example/remind"
    return action


async def orders(connection: asyncpg.Connection, schema: str) -> int:
    return int(await connection.fetchval(f"SELECT count(*) FROM {schema}.orders"))


async def ids_in(store: Store) -> list[str]:
    return [action.action_id for action in await store.list_actions(None, 100)]


async def test_a_commit_writes_both(world: World, installation: Installation, application: asyncpg.Connection) -> None:
    schema = installation.schema
    async with application.transaction():
        await application.execute(f"INSERT INTO {schema}.orders VALUES (1)")
        accepted = await create_in_postgres(application, reminder(), schema=schema)
        assert await ids_in(world.store) == [], "nobody sees it before the commit"
    assert await orders(application, schema) == 1
    [stored] = await world.store.get(["remind-1"])
    assert stored is not None
    assert (stored.guid, stored.scheduled_at_us) == (accepted.meta.guid, us_of(accepted.status.scheduled_time))
    assert accepted.status.state == action_pb2.SCHEDULED
    assert us_of(accepted.status.scheduled_time) >= world.at(3600)
    await world.assert_sound(actions=1)


async def test_a_rollback_leaves_neither(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    schema = installation.schema
    transaction = application.transaction()
    await transaction.start()
    await application.execute(f"INSERT INTO {schema}.orders VALUES (1)")
    await create_in_postgres(application, reminder(), schema=schema)
    await transaction.rollback()
    assert await orders(application, schema) == 0
    assert await ids_in(world.store) == []
    await world.assert_sound(actions=0)


async def test_a_savepoint_that_is_rolled_back_takes_the_action_with_it(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    async with application.transaction():
        await create_in_postgres(application, reminder("kept"), schema=installation.schema)
        savepoint = application.transaction()
        await savepoint.start()
        await create_in_postgres(application, reminder("regretted"), schema=installation.schema)
        await savepoint.rollback()
    assert await ids_in(world.store) == ["kept"]
    await world.assert_sound(actions=1)


async def test_an_action_that_exists_is_refused_and_the_transaction_can_go_on(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    schema = installation.schema
    for order in (1, 2):
        async with application.transaction():
            await application.execute(f"INSERT INTO {schema}.orders VALUES ({order})")
            if order == 1:
                await create_in_postgres(application, reminder(), schema=schema)
            else:
                with pytest.raises(AlreadyExists):
                    await create_in_postgres(application, reminder(), schema=schema)
    assert await orders(application, schema) == 2
    await world.assert_sound(actions=1)


async def test_a_repeated_creation_with_the_same_request_id_returns_the_first_result(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    results = []
    for _ in range(2):
        async with application.transaction():
            action = reminder("")
            results.append(
                await create_in_postgres(application, action, schema=installation.schema, request_id="order-1")
            )
    assert results[0] == results[1]
    await world.assert_sound(actions=1)


async def test_a_second_transaction_that_creates_the_same_action_waits_and_is_refused(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    other = await installation.connect()
    try:
        async with application.transaction():
            await create_in_postgres(application, reminder(), schema=installation.schema)

            async def second() -> None:
                async with other.transaction():
                    await create_in_postgres(other, reminder(), schema=installation.schema)

            refused = asyncio.create_task(second())
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'"
            while not await application.fetchval(waiting, other.get_server_pid()):
                assert not refused.done()
        with pytest.raises(AlreadyExists):
            await refused
    finally:
        await other.close()
    await world.assert_sound(actions=1)


async def test_workers_are_woken_at_the_commit_if_asked_for(
    world: World, installation: Installation, application: asyncpg.Connection
) -> None:
    waits = [asyncio.create_task(world.store.wait(shard_id, LONG_S)) for shard_id in range(world.store.shards)]
    async with application.transaction():
        await create_in_postgres(application, reminder(), schema=installation.schema, notify=True)
        await world.store.now()
        assert not any(wait.done() for wait in waits)
    done, waiting = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    assert [wait.result() for wait in done] == [True]
    for wait in waiting:
        wait.cancel()


async def test_a_wrong_call_is_refused_before_anything_is_written(
    installation: Installation, application: asyncpg.Connection
) -> None:
    with pytest.raises(ValueError, match="within a transaction"):
        await create_in_postgres(application, reminder(), schema=installation.schema)
    async with application.transaction():
        with pytest.raises(InvalidArgument, match=r"action\.spec"):
            await create_in_postgres(application, ScheduledAction(), schema=installation.schema)
        with pytest.raises(WrongUrl, match="cannot be named"):
            await create_in_postgres(application, reminder(), schema="no such; schema")
    with pytest.raises(Unusable, match="make an installation"):
        async with application.transaction():
            await create_in_postgres(application, reminder(), schema="nowhere")


async def test_the_example_of_the_documentation(installation: Installation, operator: asyncpg.Connection) -> None:
    """In a database of its own, because it uses the default schema."""
    await operator.execute(f"CREATE DATABASE {installation.schema}")
    parts = urlsplit(installation.server)
    url = urlunsplit(parts._replace(path=f"/{installation.schema}"))
    await PostgresStore.install(url, 4)
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    page = Path(__file__).parents[2] / "docs" / "transactional-creation.md"
    [example] = re.findall(r"^```python\n([^`]*place_order[^`]*)^```", page.read_text(), re.MULTILINE)
    names: dict[str, Any] = {}
    exec(example, names)
    await names["place_order"](connection, 42)
    assert await connection.fetchval("SELECT id FROM orders") == 42
    assert await connection.fetchval("SELECT meta_action_id FROM clepsydra.scheduled_actions") == "remind-42"
    await connection.close()
    await operator.execute(f"DROP DATABASE {installation.schema}")
