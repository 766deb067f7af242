"""A commit of another process wakes waiters, whether the log can be watched or has to be polled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.port import Action, Put, PutOutcome
from clepsydra.store.sqlite import SqliteStore
from clepsydra.store.sqlite.connection.connect import connect
from clepsydra.store.sqlite.connection.log_watch import LogWatch
from clepsydra.store.sqlite.connection.thread import ConnectionThread
from clepsydra.store.sqlite.connection.transaction import GroupCommit
from clepsydra.store.sqlite.wakeup import Listener
from clepsydra.store.wakeup import Wakeups

SHARDS = 4
# Never waited out, unless a wake-up was lost.
LONG_S = 10
SHORT_S = 0.05


@pytest.fixture
async def path(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    await SqliteStore.install(path, SHARDS)
    return path


@pytest.fixture
async def other(path: str) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, SystemClock())
    yield store
    await store.close()


@pytest.fixture(params=["watched", "polled"])
async def listener(request: pytest.FixtureRequest, path: str, other: SqliteStore) -> AsyncIterator[Listener]:
    writer = connect(path)
    thread = ConnectionThread(writer, GroupCommit(path, None), "writer", 1)
    listener = Listener(Wakeups(SHARDS), writer, thread, LogWatch(path) if request.param == "watched" else None)
    yield listener
    listener.close()
    thread.close()


async def create(store: SqliteStore, action_id: str, shard_id: int) -> None:
    now_us = await store.now()
    action = Action(action_id, f"guid of {action_id}", b"meta", b"spec", b"status", now_us)
    [result] = await store.put([Put(None, action, shard_id, now_us)])
    assert result.outcome is PutOutcome.DONE


async def test_a_commit_of_another_process_wakes_its_shard_and_no_other(listener: Listener, other: SqliteStore) -> None:
    waiting = [asyncio.create_task(listener.wait(shard_id, LONG_S)) for shard_id in range(SHARDS)]
    # Once a wait has ended by its timeout, the first check has been made.
    assert not await listener.wait(0, SHORT_S)
    await create(other, "a", 2)
    assert await waiting[2]
    assert not any(task.done() for n, task in enumerate(waiting) if n != 2)
    for task in waiting:
        task.cancel()


async def test_every_commit_wakes_again(listener: Listener, other: SqliteStore) -> None:
    for n in range(5):
        # A pause in between: the next commit is not found by the eager checks that follow the last one.
        await listener.wait(0, 2 * SHORT_S)
        waiting = asyncio.create_task(listener.wait(1, LONG_S))
        await asyncio.sleep(0)
        await create(other, f"a{n}", 1)
        assert await waiting


async def test_a_commit_while_nobody_waited_wakes_the_next_waiter(listener: Listener, other: SqliteStore) -> None:
    assert not await listener.wait(3, SHORT_S)
    await create(other, "a", 3)
    assert await listener.wait(3, LONG_S)


async def test_a_log_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / "other.db")).close()
    with pytest.raises(OSError, match="No such file"):
        LogWatch(str(tmp_path / "other.db"))
