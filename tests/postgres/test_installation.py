"""Making, upgrading and checking an installation, and refusing what is none."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.schema import migrations
from clepsydra.store.errors import OtherShards, Unavailable, Unusable
from clepsydra.store.install import SHARDS_DEFAULT
from clepsydra.store.postgres import PostgresStore
from clepsydra.store.postgres import installation as postgres_installation
from clepsydra.store.postgres.session import in_schema
from clepsydra.store.postgres.url import parse_url
from clepsydra.store.url import install_store, open_store
from tests.conformance.worlds import World
from tests.postgres.installations import Installation
from tests.postgres.server import running

TABLES = ["incoming_queue", "processing_queue", "scheduled_actions", "schema_migrations", "shard_locks"]
VERSION = len(migrations("postgres"))


@pytest.fixture
async def place() -> AsyncIterator[Installation]:
    """A schema that does not exist yet."""
    place = Installation()
    yield place
    await place.drop()


async def tables(connection: asyncpg.Connection, schema: str) -> list[str]:
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", schema)
    return [name for (name,) in rows]


async def recorded(connection: asyncpg.Connection, schema: str) -> list[int]:
    """The migrations that the installation says were applied."""
    rows = await connection.fetch(f"SELECT version FROM {schema}.schema_migrations ORDER BY 1")
    return [version for (version,) in rows]


async def refusal(url: str) -> str:
    """The sentence with which `open` refuses."""
    with pytest.raises(Unusable) as refused:
        await PostgresStore.open(url, SystemClock())
    return str(refused.value)


async def test_an_installation_is_four_tables_and_that_of_migrations_in_one_schema(
    installation: Installation, operator: asyncpg.Connection
) -> None:
    assert await tables(operator, installation.schema) == TABLES
    assert await recorded(operator, installation.schema) == list(range(1, VERSION + 1))


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
    assert await install_store(url, None) == SHARDS_DEFAULT
    store = await open_store(url, SystemClock())
    assert (store.shards, type(store)) == (SHARDS_DEFAULT, PostgresStore)
    await store.close()


async def test_one_database_holds_many_installations(installation: Installation, place: Installation) -> None:
    await PostgresStore.install(place.url, 7)
    assert [await PostgresStore.install(url, None) for url in (installation.url, place.url)] == [4, 7]


async def test_a_missing_installation_is_refused_with_the_way_to_make_it(place: Installation) -> None:
    reason = await refusal(place.url)
    assert f"schema={place.schema}; make one with `clepsydra init`" in reason


async def test_a_newer_schema_is_refused(installation: Installation, operator: asyncpg.Connection) -> None:
    await operator.execute(f"INSERT INTO {installation.schema}.schema_migrations VALUES (99, 0)")
    assert "has schema version 99" in await refusal(installation.url)
    with pytest.raises(Unusable, match="upgrade Clepsydra"):
        await PostgresStore.install(installation.url, None)


async def make_first_version(place: Installation, connection: asyncpg.Connection, shards: int) -> None:
    """What a Clepsydra that knew only the first migration has made."""
    await connection.execute(f"CREATE SCHEMA {place.schema}")
    await connection.execute(in_schema(migrations("postgres")[0], place.schema))
    await connection.execute(
        f"INSERT INTO {place.schema}.shard_locks "
        f"SELECT shard_id, false, '', '', 0, 0 FROM generate_series(0, {shards} - 1) AS shard_id"
    )


async def test_a_schema_of_the_first_version_is_refused_until_it_is_upgraded(place: Installation) -> None:
    connection = await place.connect()
    try:
        await make_first_version(place, connection, shards=3)
        reason = await refusal(place.url)
        assert f"has schema version 1, and this Clepsydra needs {VERSION}; upgrade it with `clepsydra init`" in reason
        with pytest.raises(OtherShards, match="has 3 shards, not 4"):
            await PostgresStore.install(place.url, 4)
        assert "schema_migrations" not in await tables(connection, place.schema), "a refused upgrade changes nothing"
        assert await asyncio.gather(*(PostgresStore.install(place.url, None) for _ in range(4))) == [3] * 4
        assert await recorded(connection, place.schema) == list(range(1, VERSION + 1))
    finally:
        await connection.close()
    store = await PostgresStore.open(place.url, SystemClock())
    assert store.shards == 3
    await store.close()


async def test_an_upgrade_leaves_actions_and_rows_as_they_are(place: Installation) -> None:
    connection = await place.connect()
    try:
        await make_first_version(place, connection, shards=4)
        await connection.execute(f"""
            INSERT INTO {place.schema}.scheduled_actions VALUES (0, 'a', 'meta', 'guid-a', 'spec', 'status', 60);
            INSERT INTO {place.schema}.incoming_queue VALUES (2, 50, 'a', 'guid-a', 60);
            INSERT INTO {place.schema}.scheduled_actions VALUES (0, 'b', 'meta', 'guid-b', 'spec', 'status', 70);
            INSERT INTO {place.schema}.processing_queue VALUES (3, 70, 'b', 'guid-b', 50, 'sync', 55, NULL, NULL);
        """)
        before = await whole_content(connection, place.schema)
        await PostgresStore.install(place.url, None)
        assert await whole_content(connection, place.schema) == before
    finally:
        await connection.close()
    store = await PostgresStore.open(place.url, SystemClock())
    world = World(store, store, await store.now(), Ids.from_system())
    assert (await world.row_of("a")).shard_id == 2
    assert (await world.row_of("b")).shard_id == 3
    await world.carry_out(world.create("c"))
    await world.assert_sound(actions=3)
    await store.close()


async def whole_content(connection: asyncpg.Connection, schema: str) -> list[Sequence[asyncpg.Record]]:
    names = [name for name in TABLES if name != "schema_migrations"]
    return [await connection.fetch(f"SELECT * FROM {schema}.{name} ORDER BY 1, 2") for name in names]


async def test_a_further_migration_is_applied_once(installation: Installation, operator: asyncpg.Connection) -> None:
    url = parse_url(installation.url)
    further = [*migrations("postgres"), "ALTER TABLE clepsydra.shard_locks ADD COLUMN note text NOT NULL DEFAULT 'new'"]
    assert await asyncio.gather(*(postgres_installation.install(url, None, further) for _ in range(4))) == [4] * 4
    assert await recorded(operator, installation.schema) == list(range(1, VERSION + 2))
    notes = await operator.fetch(f"SELECT DISTINCT note FROM {installation.schema}.shard_locks")
    assert [note for (note,) in notes] == ["new"]
    assert f"has schema version {VERSION + 1}" in await refusal(installation.url), "this Clepsydra does not know it"


async def test_a_migration_that_fails_leaves_the_version_as_it_was(
    installation: Installation, operator: asyncpg.Connection
) -> None:
    further = [*migrations("postgres"), "CREATE TABLE clepsydra.extra (n int); SELECT 1 / 0"]
    with pytest.raises(Unusable, match="division by zero"):
        await postgres_installation.install(parse_url(installation.url), None, further)
    assert await tables(operator, installation.schema) == TABLES
    assert await recorded(operator, installation.schema) == list(range(1, VERSION + 1))


async def test_a_table_shard_locks_of_another_application_is_left_alone(place: Installation) -> None:
    connection = await place.connect()
    try:
        await connection.execute(f"CREATE SCHEMA {place.schema}")
        await connection.execute(f"CREATE TABLE {place.schema}.shard_locks (mine int)")
        await connection.execute(f"COMMENT ON TABLE {place.schema}.shard_locks IS 'door locks'")
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
        assert await PostgresStore.install(url, None) == SHARDS_DEFAULT
        await connection.execute(f"DROP OWNED BY {place.schema}; DROP ROLE {place.schema}")
    finally:
        await connection.close()


async def test_a_table_of_migrations_of_another_application_is_left_alone(place: Installation) -> None:
    connection = await place.connect()
    try:
        await make_first_version(place, connection, shards=4)
        await connection.execute(f"CREATE TABLE {place.schema}.schema_migrations (version text)")
        await connection.execute(f"INSERT INTO {place.schema}.schema_migrations VALUES ('20240101')")
        with pytest.raises(Unusable, match="already exists"):
            await PostgresStore.install(place.url, None)
        assert await connection.fetchval(f"SELECT version FROM {place.schema}.schema_migrations") == "20240101"
    finally:
        await connection.close()


async def test_a_role_with_grants_on_the_four_tables_can_open_and_write(installation: Installation) -> None:
    connection = await installation.connect()
    name = installation.schema
    try:
        await connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {name} TO {name}")
        for table in ("scheduled_actions", "incoming_queue", "processing_queue", "shard_locks"):
            await connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.{table} TO {name}")
        store = await PostgresStore.open(installation.as_user(name, "word"), SystemClock())
        await store.check_writable()
        await connection.execute(f"REVOKE UPDATE ON {name}.shard_locks FROM {name}")
        with pytest.raises(Unusable, match="does not permit it to this user"):
            await store.check_writable()
        await store.close()
        await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    finally:
        await connection.close()


async def test_a_user_without_rights_on_the_tables_is_refused_with_the_reason(installation: Installation) -> None:
    connection = await installation.connect()
    name = installation.schema
    try:
        await connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {name} TO {name}")
        reason = await refusal(installation.as_user(name, "word"))
        assert "does not permit it to this user" in reason
        await connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
    finally:
        await connection.close()


async def test_a_login_that_the_server_refuses_is_reported(installation: Installation) -> None:
    assert "refused the login" in await refusal(installation.as_user("stranger", "word"))
    assert "has no such database" in await refusal(installation.in_database("nowhere"))


async def test_without_a_server_the_store_is_unavailable_and_passwords_are_not_shown() -> None:
    with pytest.raises(Unavailable, match="cannot be reached") as refused:
        await PostgresStore.install("postgresql://ada:secret@127.0.0.1:1/app?password=secret", None)
    assert "secret" not in str(refused.value)


async def test_an_older_server_and_a_unix_socket_work() -> None:
    with running(version=16) as server:
        assert await PostgresStore.install(server.socket_url, 3) == 3
        store = await PostgresStore.open(server.url, SystemClock())
        assert store.shards == 3
        assert (await store.audit(1)).actions == 0
        await store.close()
