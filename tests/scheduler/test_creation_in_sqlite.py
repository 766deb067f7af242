"""An application creates an action inside its own transaction on the same file: both are committed, or neither is."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.times import us_of
from clepsydra.scheduler.errors import AlreadyExists, InvalidArgument
from clepsydra.scheduler.transactional import create_in_sqlite
from clepsydra.store.errors import Unusable
from clepsydra.store.port import Action, Audit
from clepsydra.store.sqlite import SqliteStore
from clepsydra.v1.action_pb2 import ScheduledAction

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "transactional-creation.md"

Connect = Callable[[str], Any]
LIBRARIES: dict[str, Connect] = {"sqlite3": sqlite3.connect, "apsw": apsw.Connection}


@pytest.fixture(params=LIBRARIES)
def connect(request: pytest.FixtureRequest) -> Connect:
    return LIBRARIES[request.param]


@pytest.fixture
async def path(tmp_path: Path) -> str:
    """An installation, and a table of the application in the same file."""
    path = str(tmp_path / "app.db")
    await SqliteStore.install(path, 4)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    connection.close()
    return path


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def reminder(action_id: str = "remind-1") -> ScheduledAction:
    action = ScheduledAction()
    action.meta.id = action_id
    action.spec.schedule.delay.seconds = 3600
    action.spec.http.url = "https://shop.example/remind"
    return action


async def stored(path: str) -> tuple[list[Action], Audit]:
    store = await SqliteStore.open(path, SystemClock())
    try:
        return await store.list_actions(None, 100), await store.audit(10)
    finally:
        await store.close()


def orders(path: str) -> int:
    connection = sqlite3.connect(path)
    [(count,)] = connection.execute("SELECT count(*) FROM orders")
    connection.close()
    return int(count)


async def test_a_commit_brings_both(path: str, connect: Connect) -> None:
    connection = connect(path)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (1)")
    accepted = create_in_sqlite(connection, reminder())
    assert await stored(path) == ([], Audit(0, 0, 0, 0, 0, []))
    connection.execute("COMMIT")
    connection.close()
    [action], audit = await stored(path)
    assert (action.guid, action.scheduled_at_us) == (accepted.meta.guid, us_of(accepted.status.scheduled_time))
    assert (orders(path), audit) == (1, Audit(1, 1, 0, 0, 0, []))


async def test_a_rollback_leaves_neither(path: str, connect: Connect) -> None:
    connection = connect(path)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO orders VALUES (1)")
    create_in_sqlite(connection, reminder())
    connection.execute("ROLLBACK")
    connection.close()
    assert await stored(path) == ([], Audit(0, 0, 0, 0, 0, []))
    assert orders(path) == 0


async def test_an_action_that_exists_is_refused_and_a_replay_is_recognised(path: str, connect: Connect) -> None:
    connection = connect(path)
    results = []
    for _ in range(2):
        connection.execute("BEGIN IMMEDIATE")
        results.append(create_in_sqlite(connection, reminder(), request_id="order-1"))
        with pytest.raises(AlreadyExists):
            create_in_sqlite(connection, reminder())
        connection.execute("COMMIT")
    connection.close()
    assert results[0] == results[1]
    [_], audit = await stored(path)
    assert audit == Audit(1, 1, 0, 0, 0, [])


async def test_the_applications_own_rows_do_not_matter(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.row_factory = lambda cursor, row: {
        column[0]: value for column, value in zip(cursor.description, row, strict=True)
    }
    with connection:
        connection.execute("INSERT INTO orders VALUES (1)")
        create_in_sqlite(connection, reminder())
        create_in_sqlite(connection, reminder("another"))
    connection.close()
    assert len((await stored(path))[0]) == 2


def test_what_is_wrong_is_refused_before_anything_is_written(path: str, connect: Connect, tmp_path: Path) -> None:
    connection = connect(path)
    with pytest.raises(ValueError, match="within a transaction"):
        create_in_sqlite(connection, reminder())
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(InvalidArgument, match=r"action\.spec"):
        create_in_sqlite(connection, ScheduledAction())
    connection.execute("ROLLBACK")
    connection.close()
    stranger = connect(str(tmp_path / "other.db"))
    stranger.execute("BEGIN")
    with pytest.raises(Unusable, match="not a store"):
        create_in_sqlite(stranger, reminder())
    stranger.execute("ROLLBACK")
    stranger.close()


async def test_the_example_of_the_documentation(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(path).parent)
    [example] = [block for block in python_blocks(DOCUMENTATION) if "create_in_sqlite" in block]
    names: dict[str, Any] = {"order_id": 1, "reminder": reminder()}
    exec(example, names)
    names["connection"].close()
    [action], audit = await stored(path)
    assert (action.action_id, orders(path), audit) == ("remind-1", 1, Audit(1, 1, 0, 0, 0, []))
