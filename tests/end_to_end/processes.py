"""The installed command as a process: a test starts it, reads its output, and waits for its end.

Nothing here sleeps: a test waits for a line of output, and fails after a timeout.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from clepsydra.core.lifecycle import FASTPATH_VARIABLE

T = TypeVar("T")

SCRIPT = Path(sys.executable).with_name("clepsydra")

# Far longer than anything takes, even on a slow machine.
TIMEOUT_S = 60.0


class Result(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


class Process:
    """A running `clepsydra`. `out` and `err` are the lines of stdout and stderr so far."""

    def __init__(self, arguments: Sequence[str], folder: Path, **variables: str) -> None:
        self._popen = subprocess.Popen(
            [SCRIPT, *arguments],
            cwd=folder,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._changed = threading.Condition()
        self.out: list[str] = []
        self.err: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self._popen.stdout, self.out), daemon=True),
            threading.Thread(target=self._read, args=(self._popen.stderr, self.err), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def wait_for_out(self, text: str) -> str:
        """The first line of stdout that contains the text."""
        return self._wait_for(lambda: _first(self.out, lambda line: text in line), text)

    def wait_for_out_line(self, index: int) -> str:
        """The line of stdout with this index, from 0."""
        return self._wait_for(lambda: self.out[index] if index < len(self.out) else None, f"line {index}")

    def wait_for_err(self, text: str) -> str:
        """The first line of stderr that contains the text."""
        return self._wait_for(lambda: _first(self.err, lambda line: text in line), text)

    def wait_for_event(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first line of the JSON log with this event and these fields."""

        def matches(line: str) -> bool:
            logged = json.loads(line)
            return logged["event"] == event and all(logged.get(name) == value for name, value in fields.items())

        found: dict[str, Any] = json.loads(self._wait_for(lambda: _first(self.err, matches), event))
        return found

    @property
    def pid(self) -> int:
        return self._popen.pid

    def send(self, signum: signal.Signals) -> None:
        self._popen.send_signal(signum)

    def ended(self) -> int:
        """Wait for the end. Returns the exit code as a shell shows it."""
        code = self._popen.wait(TIMEOUT_S)
        for reader in self._readers:
            reader.join(TIMEOUT_S)
        return code if code >= 0 else 128 - code

    def stop(self) -> int:
        self.send(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self.ended()
        for pipe in (self._popen.stdout, self._popen.stderr):
            assert pipe is not None
            pipe.close()

    def _read(self, pipe: Any, lines: list[str]) -> None:
        for line in pipe:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _wait_for(self, look: Callable[[], str | None], wanted: str) -> str:
        def found_or_ended() -> bool:
            return look() is not None or not any(reader.is_alive() for reader in self._readers)

        with self._changed:
            self._changed.wait_for(found_or_ended, TIMEOUT_S)
            found = look()
        if found is None:
            output = "\n".join([*self.out, *self.err])
            raise AssertionError(f"{wanted!r} never appeared; the output was:\n{output}")
        return found


def _first(lines: Sequence[str], matches: Callable[[str], bool]) -> str | None:
    return next((line for line in lines if matches(line)), None)


class Up(Process):
    """`clepsydra up` on a free port, with a store in its folder."""

    address: str

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        super().__init__(["up", "--listen", "127.0.0.1:0", *arguments], folder, **variables)
        self.store = f"sqlite:///{folder}/clepsydra.db"

    def wait_until_ready(self) -> None:
        self.address = address_in(self.wait_for_out("listens on"))
        self.wait_for_event("the worker has started")


def address_in(announcement: str) -> str:
    """The address in "Clepsydra listens on 127.0.0.1:40123, its store is ..."."""
    return announcement.partition(" listens on ")[2].partition(",")[0]


def eventually(look: Callable[[], T], is_right: Callable[[T], bool]) -> T:
    """Look until the result is right: for what no process announces."""
    gives_up_at = time.monotonic() + TIMEOUT_S
    while not is_right(seen := look()):
        if time.monotonic() > gives_up_at:
            raise AssertionError(f"it never was right; at the end it was {seen}")
    return seen


def environment(**variables: str) -> dict[str, str]:
    """The environment of this process without its settings, and with these variables."""
    kept = {name: value for name, value in os.environ.items() if not is_setting(name)}
    return {**kept, **variables}


def is_setting(variable: str) -> bool:
    """The switch of the fast path is no setting: a child process uses the fast path if this process does."""
    return variable.startswith("CLEPSYDRA_") and variable != FASTPATH_VARIABLE


def clepsydra(*arguments: str, folder: Path, given: str | None = None, **variables: str) -> Result:
    """Run the installed command and wait for its end. `given` is its standard input."""
    done = subprocess.run(
        [SCRIPT, *arguments],
        cwd=folder,
        env=environment(**variables),
        input=given or "",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)
