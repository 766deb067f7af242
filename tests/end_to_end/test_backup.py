"""`clepsydra backup`: a copy of a store in use is a store itself, of one moment; nothing is overwritten."""

import stat
import threading
from pathlib import Path

import apsw
import pytest

from clepsydra.store.sqlite.backup import back_up
from tests.end_to_end.conftest import Command, StartUp
from tests.end_to_end.damage import damage


def test_a_copy_of_a_store_in_use_can_be_used(command: Command, start_up: StartUp, tmp_path: Path) -> None:
    up = start_up()
    for name in ("a", "b"):
        assert command("add", name, "--in", "1h", "--log", name, "--server", up.address).code == 0
    (tmp_path / "backups").mkdir()
    done = command("backup", "backups/copy.db")
    assert done.code == 0
    assert done.out.startswith("The store sqlite:///clepsydra.db is copied to backups/copy.db: ")
    assert command("rm", "a", "--server", up.address).code == 0
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["copy.db"]
    assert stat.S_IMODE((tmp_path / "backups" / "copy.db").stat().st_mode) == 0o600
    up.stop()
    # Restored: in the place of the file, without the log of the old one.
    (tmp_path / "backups" / "copy.db").replace(tmp_path / "clepsydra.db")
    assert command("audit").code == 0
    restored = start_up()
    for name in ("a", "b"):
        assert command("get", name, "--server", restored.address).code == 0


def test_an_existing_file_is_not_overwritten(command: Command, tmp_path: Path) -> None:
    assert command("init").code == 0
    (tmp_path / "kept.db").write_text("mine")
    refused = command("backup", "kept.db")
    assert refused.code == 4
    assert refused.err == "clepsydra: kept.db exists already, and a backup overwrites nothing: name another file\n"
    assert (tmp_path / "kept.db").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("x.db",), 5, "there is no store at clepsydra.db"),
        (("x.db", "--store", "postgresql://u:secret@db/app"), 2, "pg_dump for one schema"),
        (("x.db", "--store", "ydb://db:2136/local?path=c"), 2, "ydb tools dump"),
        ((), 2, "Missing argument 'FILE'"),
    ],
)
def test_what_cannot_be_copied(command: Command, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    refused = command("backup", *arguments)
    assert refused.code == code
    assert sentence in refused.err
    assert "secret" not in refused.err
    assert refused.err.count("\n") == 1


def test_a_folder_that_does_not_exist(command: Command, tmp_path: Path) -> None:
    assert command("init").code == 0
    refused = command("backup", "none/x.db")
    assert refused.code == 5
    assert "the backup none/x.db cannot be written: No such file or directory" in refused.err


def test_a_copy_is_of_one_moment_while_others_write_all_the_time(command: Command, tmp_path: Path) -> None:
    assert command("init").code == 0
    store = tmp_path / "clepsydra.db"
    damage(store, "CREATE TABLE pairs (a INTEGER, b INTEGER, filler BLOB)")
    damage(store, *(f"INSERT INTO pairs VALUES ({n}, {n}, zeroblob(100000))" for n in range(200)))
    stop = threading.Event()

    def write() -> None:
        connection = apsw.Connection(str(store))
        connection.set_busy_timeout(10_000)
        while not stop.is_set():
            connection.execute("BEGIN IMMEDIATE; UPDATE pairs SET a = a + 1; UPDATE pairs SET b = b + 1; COMMIT")
        connection.close()

    writer = threading.Thread(target=write)
    steps: list[tuple[int, int]] = []

    def progress(done: int, everything: int) -> None:
        steps.append((done, everything))
        assert len(steps) < 100, "it started over again and again"

    writer.start()
    try:
        size = back_up(str(store), str(tmp_path / "copy.db"), progress)
    finally:
        stop.set()
        writer.join()
    assert steps == sorted(steps)
    assert steps[-1] == (size, size)
    copy = apsw.Connection(str(tmp_path / "copy.db"))
    assert copy.execute("SELECT count(*), count(DISTINCT a - b), max(abs(a - b)) FROM pairs").get == (200, 1, 0)
    assert copy.pragma("integrity_check") == "ok"
    copy.close()
