"""Making an installation, checking one, and refusing what is none."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import OtherShards, Unavailable, Unusable
from clepsydra.store.postgres import PostgresStore
from clepsydra.store.url import install_store, open_store
from tests.postgres.installations import Installation
from tests.postgres.server import running

TABLES = ["incoming_queue", "processing_queue", "scheduled_actions", "shard_locks"]


@pytest.fixture
async def place() -> AsyncIterator[Installation]:
    """Where nothing is yet."""
    place = Installation()
    yield place
    await place.drop()


async def tables(connection: asyncpg.Connection, schema: str) -> list[str]:
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", schema)
    return [name for (name,) in rows]


async def why_not(url: str) -> str:
    with pytest.raises(Unusable) as refused:
        await PostgresStore.open(url, SystemClock())
    return str(refused.value)


async def test_an_installation_is_four_tables_in_a_schema_of_its_own(
    installation: Installation, operator: asyncpg.Connection
) -> None:
    assert await tables(operator, installation.schema) == TABLES


async def test_making_it_again_changes_nothing(installation: Installation) -> None:
    assert await PostgresStore.install(installation.url, None) == 4
    assert await PostgresStore.install(installation.url, 4) == 4
    with pytest.raises(OtherShards, match="has 4 shards, not 5"):
        await PostgresStore.install(installation.url, 5)


async def test_any_number_of_processes_may_make_it_at_once(place: Installation) -> None:
    assert await asyncio.gather(*(PostgresStore.install(place.url, 3) for _ in range(6))) == [3] * 6


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
async def test_both_schemes_of_urls_lead_to_it(place: Installation, scheme: str) -> None:
    url = f"{scheme}:{place.url.partition(':')[2]}"
    assert await install_store(url, None) == 16
    store = await open_store(url, SystemClock())
    assert (store.shards, type(store)) == (16, PostgresStore)
    await store.close()


async def test_one_database_holds_many_installations(installation: Installation, place: Installation) -> None:
    await PostgresStore.install(place.url, 7)
    assert [await PostgresStore.install(url, None) for url in (installation.url, place.url)] == [4, 7]


async def test_where_nothing_is_the_way_to_make_it_is_named(place: Installation) -> None:
    reason = await why_not(place.url)
    assert f"no schema {place.schema} of Clepsydra; make one with `clepsydra init`" in reason


async def test_a_newer_schema_is_refused(installation: Installation, operator: asyncpg.Connection) -> None:
    await operator.execute(f"COMMENT ON TABLE {installation.schema}.shard_locks IS 'Clepsydra schema version 99'")
    assert "has schema version 99" in await why_not(installation.url)
    with pytest.raises(Unusable, match="upgrade Clepsydra"):
        await PostgresStore.install(installation.url, None)


async def test_a_table_of_somebody_else_is_left_alone(place: Installation) -> None:
    connection = await place.connect()
    try:
        await connection.execute(f"CREATE SCHEMA {place.schema}")
        await connection.execute(f"CREATE TABLE {place.schema}.shard_locks (mine int)")
        await connection.execute(f"COMMENT ON TABLE {place.schema}.shard_locks IS 'of the smithy'")
        with pytest.raises(Unusable, match="not Clepsydra's"):
            await PostgresStore.install(place.url, None)
        await connection.execute(f"COMMENT ON TABLE {place.schema}.shard_locks IS NULL")
        with pytest.raises(Unusable, match="already exists"):
            await PostgresStore.install(place.url, None)
        assert await tables(connection, place.schema) == ["shard_locks"]
    finally:
        await connection.close()


async def test_a_user_who_owns_no_database_can_install_in_a_schema_that_was_made_for_it(place: Installation) -> None:
    connection = await place.connect()
    try:
        await connection.execute(f"CREATE ROLE {place.schema} LOGIN PASSWORD 'word'")
        url = place.as_user(place.schema, "word")
        with pytest.raises(Unusable, match="does not permit it"):
            await PostgresStore.install(url, None)
        await connection.execute(f"CREATE SCHEMA {place.schema}")
        await connection.execute(f"GRANT USAGE, CREATE ON SCHEMA {place.schema} TO {place.schema}")
        assert await PostgresStore.install(url, None) == 16
        await connection.execute(f"DROP OWNED BY {place.schema}; DROP ROLE {place.schema}")
    finally:
        await connection.close()


async def test_a_user_without_rights_on_the_tables_is_told_so(installation: Installation) -> None:
    connection = await installation.connect()
    name = installation.schema
    try:
        await connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {name} TO {name}")
        reason = await why_not(installation.as_user(name, "word"))
        assert "does not permit it to this user" in reason
        await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    finally:
        await connection.close()


async def test_the_server_refuses_whom_it_does_not_know(installation: Installation) -> None:
    assert "refused the login" in await why_not(installation.as_user("stranger", "word"))
    assert "has no such database" in await why_not(installation.in_database("nowhere"))


async def test_where_no_server_is_the_store_is_unavailable_and_passwords_are_not_shown() -> None:
    with pytest.raises(Unavailable, match="cannot be reached") as refused:
        await PostgresStore.install("postgresql://ada:secret@127.0.0.1:1/app?password=secret", None)
    assert "secret" not in str(refused.value)


async def test_an_older_server_and_a_unix_socket_will_do() -> None:
    with running(version=16) as server:
        assert await PostgresStore.install(server.socket_url, 3) == 3
        store = await PostgresStore.open(server.url, SystemClock())
        assert store.shards == 3
        assert (await store.audit(1)).actions == 0
        await store.close()
