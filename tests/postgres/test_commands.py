"""The installed command on a PostgreSQL URL: the same arguments and the same output as on any store."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

import asyncpg
import pytest

from tests.end_to_end.processes import Process, Result, address_in, clepsydra, eventually
from tests.postgres.installations import Installation


class Command(Protocol):
    def __call__(self, *arguments: str) -> Result: ...


@pytest.fixture
def command(installation: Installation, tmp_path: Path) -> Command:
    return partial(clepsydra, folder=tmp_path, CLEPSYDRA_STORE=installation.url)


@pytest.fixture
def up(installation: Installation, tmp_path: Path) -> Iterator[Process]:
    """A scheduler and a worker in one process."""
    process = Process(["up", "--listen", "127.0.0.1:0", "--store", installation.url], tmp_path)
    yield process
    process.kill()


def test_an_action_is_created_executed_and_deleted(up: Process, command: Command) -> None:
    server = ("--server", address_in(up.wait_for_out("listens on")))
    assert command("add", "hello", "--in", "100ms", "--log", "hello", *server).code == 0
    assert command("add", "later", "--in", "1d", "--log", "later", *server).code == 0
    assert up.wait_for_event("hello", action_id="hello")["attempt_number"] == 1
    states = eventually(
        lambda: {action: _state(command("get", action, "--json", *server)) for action in ("hello", "later")},
        lambda seen: seen["hello"] != "SCHEDULED",
    )
    assert states == {"hello": "SUCCEEDED", "later": "SCHEDULED"}
    assert command("pause", "later", *server).code == 0
    assert command("rm", "hello", *server).code == 0
    assert len(command("list", "--json", *server).out.splitlines()) == 1
    assert up.stop() == 0


def _state(result: Result) -> str:
    state: str = result.json()["status"]["state"]
    return state


def test_locks_stats_and_audit_show_the_store(up: Process, command: Command, installation: Installation) -> None:
    server = ("--server", address_in(up.wait_for_out("listens on")))
    assert command("add", "one", "--in", "1d", "--log", "x", *server).code == 0
    held = eventually(
        lambda: command("locks", "--json").json(), lambda locks: {lock["state"] for lock in locks} == {"held"}
    )
    assert [lock["shard"] for lock in held] == [0, 1, 2, 3]
    assert up.stop() == 0
    stats = command("stats", "--json").json()
    assert (stats["actions"], stats["shards"], stats["locked_shards"]) == (1, 4, 0)
    assert command("audit").code == 0


async def test_the_audit_finds_an_action_without_a_row(
    command: Command, operator: asyncpg.Connection, installation: Installation
) -> None:
    await operator.execute(
        f"INSERT INTO {installation.schema}.scheduled_actions VALUES (0, 'lonely', '', 'guid', '', '', 0)"
    )
    audit = command("audit", "--json")
    assert audit.code == 1
    assert [(found["id"], found["rows"]) for found in audit.json()["violations"]] == [("lonely", [])]


def test_init_can_be_repeated_and_refuses_another_number_of_shards(command: Command) -> None:
    again = command("init")
    assert (again.code, again.err) == (0, "")
    assert again.out.endswith("is ready, with 4 shards.\n")
    other = command("init", "--shards", "5")
    assert other.code == 4
    assert "has 4 shards, not 5" in other.err


@pytest.mark.parametrize(
    ("url", "code", "reason"),
    [
        ("postgresql://ada:secret@127.0.0.1:1/app", 5, "cannot be reached"),
        ("postgresql://ada:secret@127.0.0.1:1/app?shcema=x", 2, "unknown option 'shcema'"),
        ("postgres://ada:secret@127.0.0.1:1/app?schema=A", 2, "the schema cannot be named 'A'"),
    ],
)
def test_a_wrong_url_is_refused_with_one_sentence(url: str, code: int, reason: str, tmp_path: Path) -> None:
    for arguments in (["init"], ["scheduler", "--listen", "127.0.0.1:0"]):
        result = clepsydra(*arguments, "--store", url, folder=tmp_path)
        assert result.code == code
        assert reason in result.err
        assert "secret" not in result.err
        assert "Traceback" not in result.err
