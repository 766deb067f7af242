"""Files that are deleted, replaced, truncated or overwritten under a store, and a disk that fails.

What was not acknowledged may be lost; so nothing is acknowledged that is not in the file which the next process opens.
"""

import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import OutcomeUnknown, StoreLost
from clepsydra.store.port import Action, Put, PutOutcome
from clepsydra.store.sqlite import SqliteStore
from tests.sqlite.failing_disk import FailingDisk


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    path = str(tmp_path / "store.db")
    await SqliteStore.install(path, 2)
    store = await SqliteStore.open(path, SystemClock())
    yield store
    await store.close()


async def create(store: SqliteStore, *action_ids: str) -> None:
    now_us = await store.now()
    actions = [Action(name, f"guid of {name}", b"meta", b"spec", b"status", now_us) for name in action_ids]
    results = await store.put([Put(None, action, 0, now_us) for action in actions])
    assert {result.outcome for result in results} == {PutOutcome.DONE}


async def is_lost(store: SqliteStore) -> str:
    """The sentence of every further call. The first one may find out only after it has committed."""
    with pytest.raises((OutcomeUnknown, StoreLost)):
        await create(store, "late")
    with pytest.raises(StoreLost) as lost:
        await create(store, "later")
    for call in (store.get(["a"]), store.release((), 0), store.audit(1)):
        with pytest.raises(StoreLost):
            await call
    return str(lost.value)


def delete(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_suffix(".away"))


def replace(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    copy.replace(path)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(4096))


@pytest.mark.parametrize(
    ("name", "damage", "sentence"),
    [
        ("store.db", delete, "store.db, which was deleted or renamed while it was in use"),
        ("store.db", rename, "store.db, which was deleted or renamed while it was in use"),
        ("store.db", replace, "store.db, which was replaced by another while it was in use"),
        ("store.db", empty, "was overwritten while it was in use"),
        ("store.db", halve, "was truncated while it was in use"),
        ("store.db", overwrite, "was overwritten while it was in use"),
        ("store.db-wal", delete, "store.db-wal, which was deleted or renamed while it was in use"),
        ("store.db-wal", replace, "store.db-wal, which was replaced by another while it was in use"),
        ("store.db-wal", empty, "its write-ahead log, which was truncated while it was in use"),
        ("store.db-shm", delete, "store.db-shm, which was deleted or renamed while it was in use"),
    ],
)
async def test_nothing_is_acknowledged_any_more(
    store: SqliteStore, tmp_path: Path, name: str, damage: Callable[[Path], None], sentence: str
) -> None:
    await create(store, "a")
    damage(tmp_path / name)
    lost = await is_lost(store)
    assert sentence in lost
    assert lost.endswith("check the disk and the file, restore a backup if need be, and start it again")


async def test_a_store_that_is_lost_leaves_the_files_of_its_successor_alone(tmp_path: Path) -> None:
    """The last connection to close moves the log into the file, and deletes it by its name."""
    path = tmp_path / "store.db"
    await SqliteStore.install(str(path), 2)
    store = await SqliteStore.open(str(path), SystemClock())
    await create(store, "a")
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        (tmp_path / name).unlink()
    await SqliteStore.install(str(path), 2)
    successor = await SqliteStore.open(str(path), SystemClock())
    await create(successor, "b")
    await store.close()
    assert (tmp_path / "store.db-wal").exists()
    await create(successor, "c")
    await successor.close()
    reopened = await SqliteStore.open(str(path), SystemClock())
    assert [action.action_id for action in await reopened.list_actions(None, 10)] == ["b", "c"]
    await reopened.close()


async def test_a_vacuum_and_a_truncated_log_are_no_damage(store: SqliteStore, tmp_path: Path) -> None:
    for n in range(20):
        await create(store, *(f"a{n}-{m}" for m in range(100)))
    other = apsw.Connection(str(tmp_path / "store.db"))
    other.pragma("wal_checkpoint", "TRUNCATE")
    await create(store, "b")
    size = (tmp_path / "store.db").stat().st_size
    other.execute("DELETE FROM incoming_queue; DELETE FROM scheduled_actions")
    other.execute("VACUUM")
    other.pragma("wal_checkpoint", "TRUNCATE")
    assert (tmp_path / "store.db").stat().st_size < size
    await create(store, "c")
    other.close()
    await create(store, "d")


async def test_a_store_behind_a_link_is_checked_by_its_real_files(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    await SqliteStore.install(str(tmp_path / "real" / "store.db"), 2)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "store.db")
    store = await SqliteStore.open(str(link), SystemClock())
    await create(store, "a")
    (tmp_path / "real" / "store.db-wal").unlink()
    assert "store.db-wal" in await is_lost(store)
    await store.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FailingDisk]:
    disk = FailingDisk(tmp_path / "fails")
    yield disk
    disk.unregister()


async def test_after_a_failed_sync_nothing_is_acknowledged_even_if_the_next_one_would_succeed(
    disk: FailingDisk, store: SqliteStore, tmp_path: Path
) -> None:
    await create(store, "a")
    disk.fail()
    with pytest.raises(OutcomeUnknown, match="could not be synced"):
        await create(store, "b")
    disk.recover()
    assert "could not be written to its disk" in await is_lost(store)
    await store.close()
    reopened = await SqliteStore.open(str(tmp_path / "store.db"), SystemClock())
    assert "a" in [action.action_id for action in await reopened.list_actions(None, 10)]
    await reopened.close()
