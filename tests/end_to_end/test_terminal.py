"""What a terminal gets to see: plain text where plain text is wanted, and streams that the caller has closed."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Command, StartUp
from tests.end_to_end.processes import SCRIPT, TIMEOUT_S, environment


def on_terminal(*arguments: str, folder: Path, columns: int = 80, **variables: str) -> str:
    """What the command writes to stdout and stderr, which are a terminal."""
    ours, theirs = pty.openpty()
    given = {"TERM": "xterm-256color", "COLUMNS": str(columns), **variables}
    process = subprocess.Popen(
        [SCRIPT, *arguments], cwd=folder, env=environment(**given), stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 65536):
            output += chunk
    except OSError:
        # The terminal is closed when its last process ends.
        pass
    process.wait(TIMEOUT_S)
    os.close(ours)
    return output.decode()


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_sequence_where_none_is_wanted(
    variable: str, value: str, start_up: StartUp, command: Command, tmp_path: Path
) -> None:
    up = start_up()
    command("add", "a", "--in", "1d", "--log", "x", "--server", up.address)
    (tmp_path / "actions.jsonl").write_text(command("export", "--server", up.address).out)
    at = ("--server", up.address)
    assert "\x1b" in on_terminal("stats", folder=tmp_path)
    commands = [["list", *at], ["get", "a", *at], ["stats"], ["locks"], ["audit"], ["import", "actions.jsonl", *at]]
    for arguments in commands:
        shown = on_terminal(*arguments, folder=tmp_path, columns=80, **{variable: value})
        assert "\x1b" not in shown
        assert shown.strip()


def test_the_log_of_a_server_is_plain_too(tmp_path: Path) -> None:
    shown = on_terminal("worker", "--store", "sqlite:///missing.db", folder=tmp_path, NO_COLOR="1")
    assert "\x1b" not in shown


def test_a_long_list_on_a_narrow_terminal_shows_id_state_and_time(
    start_up: StartUp, command: Command, tmp_path: Path
) -> None:
    up = start_up()
    url = "https://example.org/" + "long/" * 20
    command("add", "an-action", "--at", "2099-01-01T00:00:00Z", "--every", "1h", "--http", url, "--server", up.address)

    wide = on_terminal("list", "--server", up.address, folder=tmp_path, columns=120)
    narrow = on_terminal("list", "--server", up.address, folder=tmp_path, columns=50)

    assert "every 1h" in wide
    assert "https://example.org/" in wide
    assert "…" in wide
    assert "an-action  SCHEDULED  2099-01-01T00:00:00Z (in " in narrow
    assert "https" not in narrow
    assert url in command("list", "--server", up.address).out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("list >&-", 0),
        ("list --json >&-", 0),
        ("list --all 2>&-", 0),
        ("get missing 2>&-", 3),
        ("get missing >&- 2>&- <&-", 3),
        ("export >&-", 2),
        ("add x --handler h --payload @- <&-", 2),
        ("list --json > /dev/full", 5),
    ],
)
def test_streams_that_are_closed_or_full(line: str, code: int, start_up: StartUp, tmp_path: Path) -> None:
    up = start_up()
    shell = f'"$0" {line}'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, SCRIPT],
        cwd=tmp_path,
        env=environment(CLEPSYDRA_SERVER=up.address),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, done
    assert "defect" not in done.stderr
    assert "Exception" not in done.stderr
