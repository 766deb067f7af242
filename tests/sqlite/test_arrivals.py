"""Another process's commit wakes who waits, whether the log can be watched or has to be looked at all the time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.port import Action, Put, PutOutcome
from clepsydra.store.sqlite import SqliteStore
from clepsydra.store.sqlite.arrivals import Arrivals
from clepsydra.store.sqlite.connection import connect
from clepsydra.store.sqlite.execution import ThreadLane
from clepsydra.store.sqlite.transactions import commit_together
from clepsydra.store.sqlite.watching import LogWatch
from clepsydra.store.wakeup import Wakeups

SHARDS = 4
# Never waited out, unless a hint was lost.
LONG_S = 10
SHORT_S = 0.05


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    SqliteStore.install(path, SHARDS)
    return path


@pytest.fixture
async def other(path: str) -> AsyncIterator[SqliteStore]:
    store = SqliteStore.open(path, SystemClock())
    yield store
    await store.close()


@pytest.fixture(params=["watched", "looked at"])
async def arrivals(request: pytest.FixtureRequest, path: str, other: SqliteStore) -> AsyncIterator[Arrivals]:
    writer = connect(path)
    lane = ThreadLane(writer, commit_together(path), "writer", 1)
    arrivals = Arrivals(Wakeups(SHARDS), writer, lane, LogWatch(path) if request.param == "watched" else None)
    yield arrivals
    arrivals.close()
    lane.close()


async def create(store: SqliteStore, action_id: str, shard_id: int) -> None:
    now_us = await store.now()
    action = Action(action_id, f"guid of {action_id}", b"meta", b"spec", b"status", now_us)
    [result] = await store.put([Put(None, action, shard_id, now_us)])
    assert result.outcome is PutOutcome.DONE


async def test_a_commit_of_another_process_wakes_its_shard_and_no_other(arrivals: Arrivals, other: SqliteStore) -> None:
    waiting = [asyncio.create_task(arrivals.wait(shard_id, LONG_S)) for shard_id in range(SHARDS)]
    # Once a wait has ended by its timeout, the first look has been made.
    assert not await arrivals.wait(0, SHORT_S)
    await create(other, "a", 2)
    assert await waiting[2]
    assert not any(task.done() for n, task in enumerate(waiting) if n != 2)
    for task in waiting:
        task.cancel()


async def test_every_commit_wakes_again(arrivals: Arrivals, other: SqliteStore) -> None:
    for n in range(5):
        # A rest in between: the next one is not found by the eager looks that follow the last.
        await arrivals.wait(0, 2 * SHORT_S)
        waiting = asyncio.create_task(arrivals.wait(1, LONG_S))
        await asyncio.sleep(0)
        await create(other, f"a{n}", 1)
        assert await waiting


async def test_what_came_while_nobody_waited_is_told_to_the_next_who_waits(
    arrivals: Arrivals, other: SqliteStore
) -> None:
    assert not await arrivals.wait(3, SHORT_S)
    await create(other, "a", 3)
    assert await arrivals.wait(3, LONG_S)


async def test_a_log_that_is_not_there_cannot_be_watched(tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / "other.db")).close()
    with pytest.raises(OSError, match="No such file"):
        LogWatch(str(tmp_path / "other.db"))
