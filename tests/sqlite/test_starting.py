"""How a store is opened: who may read its files, where they may be, and what a process does while others write."""

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import Unavailable, Unusable
from clepsydra.store.sqlite import SqliteStore
from clepsydra.store.sqlite.connection import connect, network

NOBODY = 65534

FILL = """
    INSERT INTO scheduled_actions VALUES (0, 'a', x'01', 'guid-a', x'02', x'03', 60);
    INSERT INTO incoming_queue VALUES (1, 50, 'a', 'guid-a', 60);
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


async def test_only_the_owner_may_read_the_files(path: str) -> None:
    """Payloads and headers may be secrets."""
    await SqliteStore.install(path, 2)
    store = await SqliteStore.open(path, SystemClock())
    modes = {name: stat.S_IMODE(os.stat(path + name).st_mode) for name in ("", "-wal", "-shm")}
    assert modes == {"": 0o600, "-wal": 0o600, "-shm": 0o600}
    await store.close()


async def test_a_file_that_exists_keeps_its_mode(path: str) -> None:
    await SqliteStore.install(path, 2)
    os.chmod(path, 0o640)
    await SqliteStore.install(path, 2)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "fuse.sshfs"])
async def test_network_file_systems_are_refused(
    path: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await SqliteStore.install(path, 2)
    mounts = tmp_path / "mountinfo"
    await asyncio.to_thread(
        mounts.write_text, f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / {tmp_path} rw shared:1 - {kind} host:/x rw\n"
    )
    monkeypatch.setattr(network, "_MOUNTS", str(mounts))
    for refused in (SqliteStore.install(path, 2), SqliteStore.open(path, SystemClock())):
        with pytest.raises(Unusable, match=r"is on a network file system .* name a file on a local disk"):
            await refused


class CountingClock(SystemClock):
    """Each failed try of a process that starts looks at the clock."""

    def __init__(self) -> None:
        self.looks = 0
        self.looked = threading.Event()

    def monotonic_us(self) -> int:
        self.looks += 1
        if self.looks > 3:
            self.looked.set()
        return super().monotonic_us()


@pytest.fixture
def short_busy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "BUSY_TIMEOUT_S", 0.01)


@pytest.mark.usefixtures("short_busy_timeout")
async def test_a_server_that_starts_waits_for_the_write_lock_longer_than_a_call_does(path: str) -> None:
    await SqliteStore.install(path, 2)
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    clock = CountingClock()
    store = await SqliteStore.open(path, clock)
    with pytest.raises(Unavailable, match="is busy"):
        await store.release((), 0)
    starting = asyncio.ensure_future(store.check_writable())
    assert await asyncio.to_thread(clock.looked.wait, 30)
    assert not starting.done()
    other.execute("ROLLBACK")
    await starting
    await store.close()


@pytest.mark.usefixtures("short_busy_timeout")
async def test_installing_waits_for_the_write_lock_as_well(path: str) -> None:
    await SqliteStore.install(path, 2)
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    installing = asyncio.ensure_future(asyncio.to_thread(lambda: asyncio.run(SqliteStore.install(path, None))))
    # Many times as long as the timeout of a call. If the other thread is slower than that, it finds the lock free.
    await asyncio.wait([installing], timeout=0.2)
    assert not installing.done()
    other.execute("ROLLBACK")
    assert await installing == 2


@pytest.fixture
def readable_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that every user can reach."""
    folder = Path("/tmp") / f"clepsydra-{os.getpid()}-{tmp_path.name}"  # noqa: S108 - pytest's own is for its user only
    folder.mkdir()
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def closed(path: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(FILL)
    connection.close()


def with_a_log(path: str) -> None:
    """The files of a process that was killed."""
    connection = apsw.Connection(path)
    connection.execute(FILL)
    for name in ("", "-wal", "-shm"):
        shutil.copy(path + name, f"{path}.copy{name}")
    connection.close()
    for name in ("", "-wal", "-shm"):
        shutil.move(f"{path}.copy{name}", path + name)


def with_a_log_alone(path: str) -> None:
    with_a_log(path)
    os.unlink(path + "-shm")


@pytest.mark.parametrize("leave", [closed, with_a_log, with_a_log_alone])
def test_a_folder_that_may_only_be_read_is_enough_to_look(readable_folder: Path, leave: Callable[[str], None]) -> None:
    path = str(readable_folder / "store.db")
    asyncio.run(SqliteStore.install(path, 2))
    leave(path)
    for file in readable_folder.iterdir():
        file.chmod(0o444)
    readable_folder.chmod(0o555)
    assert as_an_ordinary_user(lambda: asyncio.run(look(path))) == "1 action, 1 live row"


async def look(path: str) -> str:
    store = await SqliteStore.open(path, SystemClock())
    audit, stats, locks = await store.audit(1), await store.stats(0), await store.locks()
    assert len(locks) == stats.shards == 2
    with pytest.raises(Unusable, match="is read-only"):
        await store.check_writable()
    await store.close()
    return f"{audit.actions} action, {audit.live_rows} live row"


def as_an_ordinary_user(function: Callable[[], str]) -> str:
    """Root may write everywhere, so a child process gives its rights up."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(writing, function().encode())
        except BaseException as error:  # noqa: BLE001 - it goes to the parent
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read().decode()
    os.waitpid(child, 0)
    return result
