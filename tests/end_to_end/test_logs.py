"""The log of servers on stderr: JSON in a pipe, text on a terminal."""

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.processes import SCRIPT, TIMEOUT_S, environment

_TALKATIVE = """
import logging

from clepsydra.worker import handler

logging.getLogger("app").info("imported %s", "well")


@handler("h")
def h(payload: bytes) -> None: ...
"""


def test_json_in_a_pipe(start: Start, command: Command, tmp_path: Path) -> None:
    command("init")
    (tmp_path / "talkative.py").write_text(_TALKATIVE)
    worker = start("worker", "--handlers", "talkative", "--name", "w1")
    worker.wait_for_event("the worker has started", worker="w1", level="info")
    assert worker.stop() == 0
    lines = [json.loads(line) for line in worker.err]
    assert all(list(line)[:3] == ["timestamp", "level", "event"] for line in lines)
    # Lines of Python's `logging` look like the others.
    assert "imported well" in [line["event"] for line in lines]


def test_lines_below_the_level_are_not_logged(start: Start, command: Command) -> None:
    command("init")
    scheduler = start("scheduler", "--listen", "127.0.0.1:0", "--log-level", "warning")
    scheduler.wait_for_out("listens on")
    assert scheduler.stop() == 0
    assert scheduler.err == []


def test_text_in_a_pipe_if_a_flag_asks_for_it(start: Start, command: Command) -> None:
    command("init")
    worker = start("worker", "--log-format", "text", "--name", "w1")
    worker.wait_for_err("the worker has started")
    assert worker.stop() == 0
    assert all(not line.startswith("{") for line in worker.err)


def test_text_on_a_terminal(command: Command, tmp_path: Path) -> None:
    command("init")
    ours, theirs = pty.openpty()
    worker = subprocess.Popen([SCRIPT, "worker"], cwd=tmp_path, env=environment(), stderr=theirs)
    os.close(theirs)
    seen = ""
    while "the worker has started" not in seen:
        seen += os.read(ours, 4096).decode()
    assert "{" not in seen
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(TIMEOUT_S) == 0
    os.close(ours)


_FAILING = """
from clepsydra.worker import handler


@handler("h")
def h(payload: str) -> None:
    raise ValueError("no good")
"""


def test_a_traceback_shows_no_values(start_up: StartUp, command: Command, tmp_path: Path) -> None:
    """A payload may be secret."""
    (tmp_path / "failing.py").write_text(_FAILING)
    up = start_up("--handlers", "failing")
    command("add", "a", "--handler", "h", "--payload", "hush-hush", "--max-attempts", "1", "--server", up.address)
    logged = up.wait_for_event("an attempt failed")
    assert logged["exception"][0]["exc_value"] == "no good"
    assert "hush-hush" not in json.dumps(logged)
