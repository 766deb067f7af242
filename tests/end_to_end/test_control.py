"""What runs can be seen, stopped, followed and explained, with the installed commands and a real worker."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import Command
from tests.end_to_end.processes import SCRIPT, Result, Up, environment, eventually

_HANDLERS = """
import asyncio

from clepsydra.worker import Context, handler


@handler("minutes")
async def minutes(context: Context) -> None:
    try:
        await asyncio.sleep(300)
    except asyncio.CancelledError:
        with open(f"{context.action_id}.txt", "w") as file:
            file.write(f"cancelled {context.cancelled}")
        raise


@handler("twice")
async def twice(context: Context) -> None:
    if context.attempt_number == 1:
        raise ValueError("odd")
"""

Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("control")
    (folder / "their_handlers.py").write_text(_HANDLERS)
    up = Up(folder, "--handlers", "their_handlers", "--name", "the-worker")
    try:
        up.wait_until_ready()
        yield up
    finally:
        up.kill()


@pytest.fixture
def folder(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(tmp_path_factory.getbasetemp().glob("control*"))


@pytest.fixture
def ask(command: Command, up: Up) -> Ask:
    return lambda *arguments: command(*arguments, "--server", up.address)


def running(ask: Ask, action_id: str) -> dict[str, Any]:
    """Add an action that runs for minutes, and wait until it does."""
    assert ask("add", action_id, "--handler", "minutes", "--timeout", "10m").code == 0

    def get() -> dict[str, Any]:
        shown: dict[str, Any] = ask("get", action_id, "--json").json()
        return shown

    return eventually(get, lambda action: "running" in action)


def cancelled(folder: Path, action_id: str) -> str:
    file = folder / f"{action_id}.txt"
    return eventually(lambda: file.read_text() if file.exists() else "", bool)


def test_what_runs_is_shown_and_can_be_cancelled(ask: Ask, folder: Path) -> None:
    shown = running(ask, "shown")["running"]
    assert (shown["worker"], shown["attempt_number"]) == ("the-worker", 1)
    assert shown["start_time"] < shown["lease_end_time"]
    assert "\nrunning " in ask("get", "shown").out
    listed = ask("list")
    assert "SCHEDULED, running" in listed.out
    assert "running." in listed.err
    assert ask("explain", "shown").out.startswith("It is running: attempt 1 on worker the-worker since 20")
    done = ask("cancel", "shown")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("attempt 1 on the-worker, running since 20")
    assert "; shown is cancelled, kept until 20" in done.out
    assert cancelled(folder, "shown") == "cancelled True"
    again = ask("cancel", "shown")
    assert (again.code, again.out) == (4, "")
    assert "is CANCELLED already, and its outcome is kept" in again.err
    [attempt] = ask("get", "shown", "--json").json()["status"]["attempts"]
    assert (attempt["outcome"], attempt["worker"]) == ("CANCELLATION", "the-worker")
    assert "cancellation" in ask("get", "shown").out


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("removed", ("rm", "removed")),
        ("paused", ("pause", "paused")),
        ("updated", ("update", "updated", "--handler", "twice")),
    ],
)
def test_a_change_cancels_what_runs(ask: Ask, folder: Path, name: str, change: tuple[str, ...]) -> None:
    running(ask, name)
    assert ask(*change).code == 0
    assert cancelled(folder, name) == "cancelled True"


def test_an_action_that_waits_is_skipped(ask: Ask) -> None:
    ask("add", "later", "--in", "1h", "--every", "1h", "--log", "x")
    before = ask("get", "later", "--json").json()["status"]["occurrence_time"]
    ahead = ask("cancel", "later", "--occurrence", "2099-01-01T00:00:00Z")
    assert ahead.code == 4
    assert f"is of {before}: nothing is cancelled" in ahead.err
    as_json = ask("cancel", "later", "--occurrence", before, "--json").json()
    assert as_json["cancelled"] == "WAITING_OCCURRENCE"
    assert as_json["action"]["status"]["occurrence_time"] > before
    # Exactly, as --occurrence wants it.
    assert as_json["action"]["status"]["occurrence_time"] in ask("get", "later").out
    late = ask("cancel", "later", "--occurrence", before)
    assert late.code == 4
    assert "ended before it could be cancelled, and its outcome is kept" in late.err
    assert ask("cancel", "later", "gone").code == 3
    assert ask("cancel", "a", "b", "--occurrence", before).code == 2


def test_a_watch_ends_with_the_action(ask: Ask) -> None:
    ask("add", "watched", "--handler", "twice", "--retry-delay", "10ms")
    watched = ask("watch", "watched", "--interval", "0.05", "--json")
    assert watched.code == 0
    events = [json.loads(line) for line in watched.out.splitlines()]
    outcomes = [event["outcome"] for event in events if event["event"] == "attempt"]
    assert outcomes[-1] == "SUCCESS"
    assert events[-1] == {"event": "state", **events[-1], "state": "SUCCEEDED"}
    text = ask("watch", "watched").out.splitlines()
    assert text[0].startswith("success at 20")
    assert text[-1].startswith("watched is succeeded, kept until 20")
    ask("add", "hopeless", "--in", "1h", "--log", "x")
    ask("cancel", "hopeless")
    assert ask("watch", "hopeless").code == 1
    assert ask("watch", "nobody").code == 3


def test_an_action_whose_handler_is_missing_is_explained(ask: Ask) -> None:
    ask("add", "orphan", "--handler", "nobody-has-it", "--retry-delay", "1h")
    explained = eventually(lambda: ask("explain", "orphan"), lambda shown: "NO_HANDLER" in shown.out)
    assert explained.out.startswith("The worker that tried it does not have its handler: no handler named")
    as_json = ask("explain", "orphan", "--json").json()
    assert as_json["reason"] == "NO_HANDLER"
    assert as_json["lock"]["worker"] == "the-worker"
    assert as_json["stages"][-1]["name"] == "ended"
    assert ask("explain", "nobody").code == 3
    ask("rm", "orphan")
    assert ask("explain", "orphan").out.startswith("It was deleted on 20")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_for_each_shell(command: Command, shell: str) -> None:
    script = command("completion", shell)
    assert (script.code, script.err) == (0, "")
    assert "_CLEPSYDRA_COMPLETE" in script.out
    assert command("completion", "powershell").code == 2


def test_commands_and_ids_are_completed(ask: Ask, up: Up, tmp_path: Path) -> None:
    ask("add", "complete-me", "--in", "1h", "--log", "x")

    def completions(words: str, **variables: str) -> list[str]:
        done = subprocess.run(
            [SCRIPT],
            cwd=tmp_path,
            env=environment(
                _CLEPSYDRA_COMPLETE="bash_complete",
                COMP_WORDS=words,
                COMP_CWORD=str(len(words.split()) - 1),
                **variables,
            ),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout.split()

    assert sorted(completions("clepsydra exp")) == ["plain,explain", "plain,export"]
    assert completions("clepsydra cancel comp", CLEPSYDRA_SERVER=up.address) == ["plain,complete-me"]
    # No scheduler: no completion, and no message.
    assert completions("clepsydra get comp", CLEPSYDRA_SERVER="127.0.0.1:1") == []
