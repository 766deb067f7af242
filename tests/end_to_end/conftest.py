"""Processes that end with their test, and the command called in the process of the test."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from clepsydra.tools import cli
from tests.end_to_end.processes import Process, Result, Up, is_setting

Command = Callable[..., Result]
Start = Callable[..., Process]
StartUp = Callable[..., Up]


@pytest.fixture
def started() -> Iterator[list[Process]]:
    """The processes in this list are killed at the end of the test."""
    processes: list[Process] = []
    yield processes
    for process in processes:
        process.kill()


@pytest.fixture
def start(tmp_path: Path, started: list[Process]) -> Start:
    """Start `clepsydra` with these arguments, in the folder of the test."""

    def begin(*arguments: str, **variables: str) -> Process:
        process = Process(arguments, tmp_path, **variables)
        started.append(process)
        return process

    return begin


@pytest.fixture
def start_up(tmp_path: Path, started: list[Process]) -> StartUp:
    """Start `clepsydra up` in the folder of the test, and wait until it is ready."""

    def begin(*arguments: str, **variables: str) -> Up:
        process = Up(tmp_path, *arguments, **variables)
        started.append(process)
        process.wait_until_ready()
        return process

    return begin


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Call the command in this process. It is faster, with the same exit codes and the same output."""
    for name in list(os.environ):
        if is_setting(name):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    handlers, level = logging.root.handlers[:], logging.root.level

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = cli.run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    yield call
    # Server commands configure logging for their process, which is the process of the tests here.
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    structlog.reset_defaults()
