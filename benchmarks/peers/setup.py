"""A tool on a store of its own, and the processes that work on it."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.installation import wait_until
from benchmarks.peers import job_lines
from benchmarks.peers.server import Databases
from benchmarks.peers.tool import Settings, StoreKind, Tool

ROOT = Path(__file__).parents[2]
_START_S = 60.0
_STOP_S = 20.0


class DriverFailed(Exception):
    """A driver ended with an error: the text is the end of what it said."""


class Worker:
    """A process that executes jobs."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log
        self._seen = psutil.Process(process.pid)

    def wait_until_ready(self) -> None:
        wait_until(self._is_ready, _START_S)

    def memory_mb(self) -> float:
        with contextlib.suppress(psutil.NoSuchProcess):
            return float(self._seen.memory_info().rss / 1e6)
        return 0.0

    def cpu_s(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def executed(self, folder: Path) -> int:
        return job_lines.executed(folder, self._process.pid)

    def kill(self) -> None:
        """As if by accident."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            said = self._log.read_text(errors="replace")[-2000:]
            raise DriverFailed(f"a worker ended with {self._process.returncode}: {said}")

    def _is_ready(self) -> bool:
        self.check_alive()
        return "ready" in self._log.read_text(errors="replace")


class Setup:
    """Leaving the context stops every process."""

    def __init__(self, tool: Tool, folder: Path, store: str, databases: Databases) -> None:
        self.tool = tool
        self.folder = folder
        self.records = folder / "records"
        self.records.mkdir(parents=True, exist_ok=True)
        self._store = store
        self._databases = databases
        self._workers: list[Worker] = []
        # How long a job takes.
        self.rest_s = 0.0

    def __enter__(self) -> "Setup":
        return self

    def __exit__(self, *_exc: object) -> None:
        for worker in self._workers:
            worker.stop()

    def ask(self, command: str, settings: Settings, timeout_s: float = 120.0, **request: Any) -> dict[str, Any]:
        """Have the driver do something to its end."""
        with self._started(command, settings, request, subprocess.PIPE) as process:
            try:
                said, complained = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                # Its whole session: a driver may have started processes itself.
                os.killpg(process.pid, signal.SIGKILL)
                raise DriverFailed(f"{self.tool.name} did not {command} within {timeout_s:g} s") from None
        if process.returncode:
            raise DriverFailed(f"{self.tool.name} could not {command}: {complained.decode(errors='replace')[-2000:]}")
        answer: dict[str, Any] = json.loads(said.splitlines()[-1])
        return answer

    def work(self, settings: Settings, name: str | None = None) -> Worker:
        """Start a worker; under the name of an earlier one, if it is to take its place."""
        own = f"worker-{len(self._workers)}"
        log = self.folder / f"{own}.log"
        with log.open("wb") as output:
            worker = Worker(name or own, self._started("work", settings, {"name": name or own}, output), log)
        self._workers.append(worker)
        return worker

    def check(self, settings: Settings) -> None:
        """Stop all workers, and raise if the store is not sound."""
        for worker in self._workers:
            worker.stop()
        self.ask("check", settings, timeout_s=900.0)

    def executed(self) -> int:
        return job_lines.executed(self.records)

    def unfinished(self) -> int:
        """How many due jobs have not ended, as the store has it."""
        if self.tool.store is StoreKind.POSTGRES:
            return int(self._databases.value(self.tool.unfinished, self._store.rpartition("/")[2]))
        path = self._store.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
            return int(connection.execute(self.tool.unfinished).fetchone()[0])

    def tidy(self) -> None:
        """The store is at rest: nothing that was written before is still to be written or looked after."""
        if self.tool.store is StoreKind.POSTGRES:
            self._databases.tidy(self._store.rpartition("/")[2])
        os.sync()

    def server_cpu_s(self) -> float:
        return self._databases.cpu_s() if self.tool.store is StoreKind.POSTGRES else 0.0

    def _started(
        self, command: str, settings: Settings, request: dict[str, Any], output: Any
    ) -> "subprocess.Popen[bytes]":
        asked = json.dumps({"store": self._store, "settings": settings, **request})
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCHMARK_RECORDS": str(self.records)}
        environment |= {"BENCHMARK_REST_S": str(self.rest_s), "TZ": "UTC"}
        return subprocess.Popen(
            [*self.tool.line(), command, asked],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE if output is subprocess.PIPE else subprocess.STDOUT,
            start_new_session=True,
        )


def now_us() -> int:
    return time.time_ns() // 1000
