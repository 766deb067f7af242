"""Stores that cannot be used: each command says why and what to do, with the documented exit code."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.end_to_end.conftest import Command
from tests.end_to_end.damage import make_read_only

_LOOKING = ("locks", "stats", "audit")
_SERVING = ("scheduler", "worker")
_MAKING = ("init", "up")
_EVERY = (*_LOOKING, *_SERVING, *_MAKING)


def _refused(command: Command, name: str, store: str, code: int, sentence: str) -> None:
    refused = command(name, "--store", store)
    assert refused.out == ""
    assert refused.err == f"clepsydra: {sentence}\n"
    assert refused.code == code


@pytest.fixture
def store(command: Command, tmp_path: Path) -> Path:
    assert command("init", "--store", "sqlite:///good.db", "--shards", "2").code == 0
    return tmp_path / "good.db"


@pytest.mark.parametrize("name", _EVERY)
@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "the store '' is not a URL"),
        ("clepsydra.db", "the store 'clepsydra.db' is not a URL"),
        ("mysql://a:secret@b/c", "the store URL 'mysql://a:***@b/c' has the unknown scheme 'mysql'"),
        ("sqlte:///a.db", "did you mean sqlite?"),
        ("sqlite://a.db", "has no three slashes after its scheme"),
        ("sqlite:///", "names no file"),
        ("sqlite:///a.db?mode=ro", "has a query or a fragment"),
        ("sqlite:///:memory:", "what is only in memory would be lost"),
    ],
)
def test_wrong_urls(command: Command, name: str, url: str, sentence: str) -> None:
    refused = command(name, "--store", url)
    assert refused.code == 2
    assert sentence in refused.err
    assert refused.err.count("\n") == 1
    assert "secret" not in refused.err


@pytest.mark.parametrize("name", [*_LOOKING, *_SERVING])
def test_a_store_that_does_not_exist(command: Command, tmp_path: Path, name: str) -> None:
    sentence = "there is no store at none.db; make one with `clepsydra init --store sqlite:///none.db`"
    _refused(command, name, "sqlite:///none.db", 5, sentence)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize("name", _MAKING)
def test_a_folder_that_does_not_exist(command: Command, name: str) -> None:
    sentence = "the store no/none.db cannot be opened; check that its folder exists and may be written to"
    _refused(command, name, "sqlite:///no/none.db", 5, sentence)


@pytest.mark.parametrize("name", _EVERY)
def test_a_folder_as_store(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    _refused(command, name, "sqlite:///folder", 5, "folder is a folder, not a store; name a file in it")


@pytest.mark.parametrize("name", _EVERY)
def test_a_file_that_is_not_a_database(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.db").write_text("This is not a database, whatever its name says.\n" * 100)
    sentence = "the store text.db is not a SQLite database; name another file"
    _refused(command, name, "sqlite:///text.db", 5, sentence)


@pytest.mark.parametrize("name", _EVERY)
def test_a_database_that_is_not_a_store(command: Command, tmp_path: Path, name: str) -> None:
    connection = apsw.Connection(str(tmp_path / "other.db"))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    sentence = (
        "other.db is a SQLite database, but not a store of Clepsydra; name another file, "
        "or make a store with `clepsydra init`"
    )
    _refused(command, name, "sqlite:///other.db", 5, sentence)


@pytest.mark.parametrize("name", _EVERY)
def test_a_schema_that_is_too_new(command: Command, store: Path, name: str) -> None:
    connection = apsw.Connection(str(store))
    connection.pragma("user_version", 999)
    connection.close()
    refused = command(name, "--store", "sqlite:///good.db")
    assert refused.code == 5
    assert refused.err.startswith("clepsydra: the store good.db has schema version 999, and this Clepsydra knows ")
    assert refused.err.endswith("; upgrade Clepsydra\n")


@pytest.mark.parametrize("name", [*_SERVING, "up"])
def test_servers_refuse_a_read_only_store(command: Command, store: Path, name: str) -> None:
    make_read_only(store)
    sentence = "the store good.db is read-only; check the permissions of the file and of its folder"
    _refused(command, name, "sqlite:///good.db", 5, sentence)


@pytest.mark.parametrize("name", [*_LOOKING, "init"])
def test_commands_that_only_read_take_a_read_only_store(command: Command, store: Path, name: str) -> None:
    make_read_only(store)
    assert command(name, "--store", "sqlite:///good.db").code == 0


@pytest.mark.parametrize("damage", [lambda content: content[: len(content) // 2], lambda content: content[:100]])
@pytest.mark.parametrize("name", _EVERY)
def test_a_corrupt_store(command: Command, store: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    store.write_bytes(damage(store.read_bytes()))
    refused = command(name, "--store", "sqlite:///good.db")
    assert refused.code == 5
    assert refused.err.startswith("clepsydra: the store good.db is ")
    assert refused.err.count("\n") == 1


def test_another_number_of_shards(command: Command, store: Path) -> None:
    assert command("init", "--store", "sqlite:///good.db").out.endswith("is ready, with 2 shards.\n")
    assert command("init", "--store", "sqlite:///good.db", "--shards", "2").code == 0
    refused = command("init", "--store", "sqlite:///good.db", "--shards", "3")
    assert refused.code == 4
    assert refused.err.startswith("clepsydra: the store good.db has 2 shards, not 3, and their number cannot change")
