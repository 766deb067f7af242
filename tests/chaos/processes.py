"""Processes that can be killed, paused and started again. What they say goes to a file that outlives them."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.chaos.until import until
from tests.end_to_end.processes import SCRIPT, environment

# Where `tests` can be imported from.
ROOT = Path(__file__).resolve().parents[2]

_TAIL_LINES = 30
# A command that takes longer than this hangs.
_COMMAND_S = 300.0


class Node:
    """One place in the installation, and the process that fills it at present."""

    def __init__(self, name: str, command: Sequence[str | Path], folder: Path, variables: Mapping[str, str]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._command = command
        self._variables = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None
        self._spoke_before = 0
        # Whether a process should be here: if not, its end is nobody's concern.
        self.wanted = False
        self.is_paused = False

    def start(self) -> None:
        assert not self.is_running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._spoke_before = log.tell()
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                env=environment(**self._variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.wanted = True

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative if a signal ended it."""
        return None if self._process is None else self._process.poll()

    def kill(self) -> None:
        """SIGKILL: no process can do anything about it, not even one that is paused."""
        self.wanted = self.is_paused = False
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        if self.is_running:
            self.is_paused = True
            os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        if self.is_running and self.is_paused:
            os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    async def stop(self) -> int | None:
        """SIGTERM, and wait for the end. Returns the exit code; None if it does not end, and has to be killed."""
        self.wanted = False
        self.go_on()
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        try:
            await until(lambda: not self.is_running, f"{self.name} ends")
        except AssertionError:
            self.kill()
            return None
        return self.exit_code

    def said(self) -> str:
        """What the present process has said."""
        with self.log.open("rb") as log:
            log.seek(self._spoke_before)
            return log.read().decode(errors="replace")

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- {self.name}", *lines[-_TAIL_LINES:]])


def command_line(*arguments: str) -> list[str | Path]:
    """The installed command."""
    return [SCRIPT, *arguments]


def python_module(module: str, *arguments: str) -> list[str | Path]:
    return [sys.executable, "-m", module, *arguments]


async def run_command(*arguments: str) -> tuple[int, str]:
    """Run the installed command to its end. Returns its exit code and all that it said."""
    process = await asyncio.create_subprocess_exec(
        *command_line(*arguments),
        cwd=ROOT,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(_COMMAND_S):
            said, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise AssertionError(f"{' '.join(arguments)} did not end within {_COMMAND_S:g} s") from error
    assert process.returncode is not None
    return process.returncode, said.decode(errors="replace")
