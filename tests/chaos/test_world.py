"""Who watches: an audit that finds something, a process that ends by itself, a disk that is full."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from clepsydra.core.times import HOUR_US
from tests.chaos.action import Actor, quick
from tests.chaos.caller import Caller
from tests.chaos.conftest import StartWorld
from tests.chaos.disk import Disk, limited_disk, make_disk
from tests.chaos.processes import Node
from tests.chaos.until import until

CallAt = Callable[[str], Caller]


async def test_a_lost_row_is_a_trouble(start_world: StartWorld, call_at: CallAt) -> None:
    world = await start_world(workers=1)
    await Actor(world, call_at(world.server)).create("a", quick(), time.time_ns() // 1000 + HOUR_US)
    await world.audit()
    assert world.troubles == []
    connection = apsw.Connection(world.store.url.removeprefix("sqlite:///"))
    for queue in ("incoming_queue", "processing_queue"):
        connection.execute(f"DELETE FROM {queue}")
    connection.close()
    await world.audit()
    [trouble] = world.troubles
    assert '"without_row": 1' in trouble


async def test_a_process_that_ends_by_itself_is_a_trouble_and_is_started_again(start_world: StartWorld) -> None:
    world = await start_world(workers=1, schedulers=1)
    [worker] = world.workers
    # As a crash would: it was not the nemesis.
    os.kill(worker.pid, 9)
    await until(lambda: bool(world.troubles), "it is noticed")
    assert world.troubles[0].startswith("worker-1 ended by itself with -9")
    await until(lambda: worker.is_running, "it runs again")


def test_a_process_that_was_paused_can_be_killed_and_started_again(tmp_path: Path) -> None:
    node = Node("node", [sys.executable, "-c", "input()"], tmp_path, {})
    node.start()
    first = node.pid
    node.pause()
    node.kill()
    assert node.exit_code == -9
    node.start()
    assert node.pid != first
    node.kill()


_WRITER = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    for line in sys.stdin:
        try:
            written = sum(file.write(bytes(65536)) for _ in range(16))
            sys.stdout.write("all\\n" if written == 16 * 65536 else "some\\n")
        except OSError as error:
            sys.stdout.write(f"{error.errno}\\n")
        sys.stdout.flush()
"""


@pytest.mark.parametrize("make", [make_disk, limited_disk])
def test_a_full_disk_stops_writers_until_it_is_emptied(make: Callable[[Path], Disk], tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    disk = make(folder)
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, folder / "file"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdin is not None
    assert writer.stdout is not None

    def write() -> str:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("more\n")
        writer.stdin.flush()
        return writer.stdout.readline().strip()

    try:
        assert writer.stdout.readline() == "ready\n"
        assert write() == "all"
        disk.fill([writer.pid])
        answers = {write(), write()}
        assert answers & {str(errno.ENOSPC), str(errno.EFBIG)}
        assert "all" not in answers
        disk.empty([writer.pid])
        assert write() == "all"
    finally:
        writer.stdin.close()
        writer.stdout.close()
        writer.wait()
        disk.close()
