"""A log that cannot be written: lines are lost, work is not."""

import io
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from clepsydra.tools.process.log_stream import LogStream
from tests.chaos.action import Actor, quick
from tests.chaos.caller import Caller
from tests.chaos.conftest import StartWorld
from tests.chaos.processes import ROOT, command_line
from tests.chaos.side_log import VARIABLE
from tests.end_to_end.processes import TIMEOUT_S, environment

CallAt = Callable[[str], Caller]


@pytest.fixture
def start_worker_on_full_disk(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """A worker whose every line of log meets a full disk."""
    started: list[subprocess.Popen[bytes]] = []

    def start(store: str) -> subprocess.Popen[bytes]:
        with open("/dev/full", "w") as full:
            worker = subprocess.Popen(
                command_line("worker", "--store", store, "--handlers", "tests.chaos.handlers", "--log-level", "debug"),
                cwd=ROOT,
                env=environment(**{VARIABLE: str(tmp_path / "side.log")}),
                stderr=full,
            )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.kill()
        worker.wait(TIMEOUT_S)


async def test_a_worker_works_without_its_log(
    start_world: StartWorld, call_at: CallAt, start_worker_on_full_disk: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    world = await start_world(workers=0)
    worker = start_worker_on_full_disk(world.store.url)
    actor = Actor(world, call_at(world.server))
    await actor.create("a", quick(), time.time_ns() // 1000)
    attempt = await actor.started(1)
    assert attempt.pid == worker.pid
    assert worker.poll() is None


class FullFor(io.StringIO):
    """A stream whose first writes fail."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self._failures = failures

    def write(self, text: str) -> int:
        if self._failures:
            self._failures -= 1
            raise OSError(28, "No space left on device")
        return super().write(text)


def test_lost_lines_are_counted_and_reported() -> None:
    target = FullFor(failures=2)
    stream = LogStream(target)
    log = structlog.wrap_logger(
        structlog.WriteLogger(stream),  # type: ignore[arg-type]
        processors=[stream.add_lost_lines, structlog.processors.JSONRenderer()],
    )
    for event in ("one", "two", "three"):
        log.info(event)
    assert [json.loads(line) for line in target.getvalue().splitlines()] == [{"event": "three", "lines_lost": 2}]
