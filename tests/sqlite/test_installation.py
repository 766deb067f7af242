"""Making, upgrading and refusing a file."""

from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import Unusable
from clepsydra.store.sqlite import SqliteStore, installation
from clepsydra.store.sqlite.installation import MIGRATIONS

VERSION = len(MIGRATIONS)

FILL = """
    INSERT INTO scheduled_actions VALUES (0, 'a', x'01', 'guid-a', x'02', x'03', 60);
    INSERT INTO incoming_queue VALUES (2, 50, 'a', 'guid-a', 60);
    INSERT INTO processing_queue VALUES (1, 70, 'b', 'guid-b', 40, 'sync', 45, NULL, NULL);
    UPDATE shard_locks SET locked = 1, last_lock_guid = 'held' WHERE shard_id = 1;
"""
TABLES = ("scheduled_actions", "incoming_queue", "processing_queue", "shard_locks")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def content(path: str) -> list[list[tuple[object, ...]]]:
    connection = apsw.Connection(path)
    rows = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES]
    connection.close()
    return rows


def recorded(path: str) -> list[int]:
    connection = apsw.Connection(path)
    versions = [version for (version,) in connection.execute("SELECT version FROM schema_migrations ORDER BY 1")]
    connection.close()
    return versions


def execute(path: str, statements: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(statements)
    connection.close()


async def test_a_new_file_records_its_migrations(path: str) -> None:
    assert await SqliteStore.install(path, 3) == 3
    assert recorded(path) == list(range(1, VERSION + 1))


async def test_a_file_of_the_first_version_is_refused_until_it_is_upgraded(path: str) -> None:
    assert await installation.install(path, 4, MIGRATIONS[:1]) == 4
    needs = f"has schema version 1, and this Clepsydra needs {VERSION}; upgrade it with `clepsydra init`"
    with pytest.raises(Unusable, match=needs):
        await SqliteStore.open(path, SystemClock())
    assert await SqliteStore.install(path, None) == 4
    assert recorded(path) == list(range(1, VERSION + 1))
    store = await SqliteStore.open(path, SystemClock())
    await store.close()


async def test_an_upgrade_leaves_actions_rows_and_locks_as_they_are(path: str) -> None:
    await installation.install(path, 4, MIGRATIONS[:1])
    execute(path, FILL)
    before = content(path)
    await SqliteStore.install(path, 4)
    assert content(path) == before
    store = await SqliteStore.open(path, SystemClock())
    assert [action.action_id for action in await store.list_actions(None, 10) if action] == ["a"]
    await store.close()


async def test_an_upgrade_that_fails_changes_nothing(path: str) -> None:
    await installation.install(path, 4, MIGRATIONS[:1])
    execute(path, FILL)
    before = content(path)
    with pytest.raises(Unusable):
        await installation.install(path, None, [*MIGRATIONS, "CREATE TABLE shard_locks (x)"])
    assert content(path) == before
    with pytest.raises(apsw.SQLError, match="no such table"):
        recorded(path)
    assert await SqliteStore.install(path, None) == 4


async def test_a_file_of_a_later_version_is_refused(path: str) -> None:
    later = [*MIGRATIONS, "CREATE TABLE later (x INTEGER)"]
    await installation.install(path, None, later)
    for refused in (SqliteStore.install(path, None), SqliteStore.open(path, SystemClock())):
        with pytest.raises(Unusable, match="knows versions up to"):
            await refused
    assert recorded(path) == list(range(1, len(later) + 1))
