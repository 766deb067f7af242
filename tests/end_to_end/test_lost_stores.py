"""Processes whose store was taken away, or whose disk has failed: they acknowledge nothing more, and end."""

import shutil
from pathlib import Path

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.processes import address_in

_HANDLERS = """
from clepsydra.worker import handler
from tests.sqlite.failing_disk import FailingDisk

disk = FailingDisk("fails")


@handler("nothing")
async def do_nothing() -> None: ...
"""
_ROOT = Path(__file__).parents[2]
_ENDS = "this process acknowledges nothing more, and ends; check the disk and the file"


def test_a_scheduler_ends_when_its_file_was_deleted(command: Command, start: Start, tmp_path: Path) -> None:
    assert command("init").code == 0
    scheduler = start("scheduler", "--listen", "127.0.0.1:0")
    address = address_in(scheduler.wait_for_out("listens on"))
    assert command("add", "kept", "--in", "1h", "--log", "x", "--server", address).code == 0
    (tmp_path / "clepsydra.db").unlink()
    refused = command("add", "lost", "--in", "1h", "--log", "x", "--server", address)
    assert refused.code == 5
    assert scheduler.ended() == 5
    assert scheduler.err[-1].startswith("clepsydra: the store clepsydra.db has lost its file ")
    assert _ENDS in scheduler.err[-1]


def test_a_worker_ends_when_its_file_was_replaced(command: Command, start: Start, tmp_path: Path) -> None:
    assert command("init").code == 0
    worker = start("worker")
    worker.wait_for_event("the worker has started")
    shutil.copy(tmp_path / "clepsydra.db", tmp_path / "backup.db")
    (tmp_path / "backup.db").replace(tmp_path / "clepsydra.db")
    assert worker.ended() == 5
    assert "clepsydra.db, which was replaced by another while it was in use" in worker.err[-1]
    assert _ENDS in worker.err[-1]


def test_everything_ends_with_one_sentence_when_its_file_was_deleted(
    command: Command, start_up: StartUp, tmp_path: Path
) -> None:
    up = start_up()
    assert command("add", "first", "--log", "a shard is held", "--server", up.address).code == 0
    up.wait_for_event("a shard is held")
    for file in tmp_path.glob("clepsydra.db*"):
        file.unlink()
    assert up.ended() == 5
    assert up.err[-1].startswith("clepsydra: the store clepsydra.db has lost its file ")
    assert not [line for line in up.err if "exception" in line]


def test_everything_ends_after_a_failed_sync(command: Command, start_up: StartUp, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(_HANDLERS)
    up = start_up("--handlers", "failing", PYTHONPATH=str(_ROOT))
    assert command("add", "kept", "--in", "1h", "--log", "x", "--server", up.address).code == 0
    (tmp_path / "fails").touch()
    assert command("add", "unknown", "--in", "1h", "--log", "x", "--server", up.address).code == 5
    assert up.ended() == 5
    assert "the store clepsydra.db could not be written to its disk" in up.err[-1]
    assert _ENDS in up.err[-1]
    (tmp_path / "fails").unlink()
    again = start_up()
    assert command("get", "kept", "--server", again.address).code == 0
