"""What the tests of this folder share: processes that end with the test, and the command called in this process."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from clepsydra.tools import cli
from tests.end_to_end.processes import Process, Result, Up

Command = Callable[..., Result]
Start = Callable[..., Process]
StartUp = Callable[..., Up]


@pytest.fixture
def started() -> Iterator[list[Process]]:
    """Whatever is put here is ended with the test."""
    processes: list[Process] = []
    yield processes
    for process in processes:
        process.kill()


@pytest.fixture
def start(tmp_path: Path, started: list[Process]) -> Start:
    """Start `clepsydra` with these arguments, in the test's own folder."""

    def begin(*arguments: str, **variables: str) -> Process:
        process = Process(arguments, tmp_path, **variables)
        started.append(process)
        return process

    return begin


@pytest.fixture
def start_up(tmp_path: Path, started: list[Process]) -> StartUp:
    """Start `clepsydra up` in the test's own folder, and wait until it is ready."""

    def begin(*arguments: str, **variables: str) -> Up:
        process = Up(tmp_path, *arguments, **variables)
        started.append(process)
        process.wait_until_ready()
        return process

    return begin


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Call the command in this process, which is quicker: same code, same exit codes, same output."""
    for name in list(os.environ):
        if name.startswith("CLEPSYDRA_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    handlers, level = logging.root.handlers[:], logging.root.level

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = cli.run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    yield call
    # Commands that serve set up logging for their process, which here is the tests'.
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()
