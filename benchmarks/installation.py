"""A real installation for a benchmark: a fresh store, and processes started by the installed command."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import psutil

from benchmarks.notes import executed


class Installation:
    """Everything lives in one folder; leaving the context stops all processes."""

    def __init__(
        self,
        folder: Path,
        store: str | None = None,
        shards: int = 8,
        handlers: str = "benchmarks.handlers",
        python_path: str | None = None,
    ) -> None:
        self.folder = folder
        # From where the processes import: another revision of the project, or the one that is installed.
        self._python_path = python_path or str(Path(__file__).parent.parent)
        self._handlers = handlers
        folder.mkdir(parents=True, exist_ok=True)
        self.store = store or f"sqlite:///{folder / 'store.db'}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.command("init", "--shards", str(shards))

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *_exc: object) -> None:
        for process in self.processes:
            self.stop(process)

    def command(self, *arguments: str) -> str:
        """Run a command to its end."""
        line, environment = self.line(*arguments), self.environment()
        return subprocess.run(line, env=environment, check=True, capture_output=True, text=True).stdout

    def line(self, *arguments: str) -> list[str]:
        """The installed command with these arguments."""
        return [str(Path(sys.executable).parent / "clepsydra"), *arguments]

    def scheduler(self, *arguments: str) -> str:
        """Start a scheduler; returns its address."""
        port = free_port()
        self._start("scheduler", "--listen", f"127.0.0.1:{port}", *arguments)
        wait_for_server(f"127.0.0.1:{port}")
        return f"127.0.0.1:{port}"

    def worker(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return self._start("worker", "--handlers", self._handlers, *arguments)

    def up(self) -> tuple[str, "subprocess.Popen[bytes]"]:
        port = free_port()
        process = self._start("up", "--listen", f"127.0.0.1:{port}", "--handlers", self._handlers)
        wait_for_server(f"127.0.0.1:{port}")
        return f"127.0.0.1:{port}", process

    def stop(self, process: "subprocess.Popen[bytes]") -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)

    def executed(self) -> int:
        return executed(self.folder)

    def audit_is_clean(self) -> bool:
        """Raises if the audit finds a violation: its exit status says so."""
        self.command("audit", "--json")
        return True

    def _start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        line, environment = self.line(*arguments), self.environment()
        with (self.folder / f"{arguments[0]}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(line, env=environment, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def environment(self) -> dict[str, str]:
        """What the processes are started with."""
        return {
            **os.environ,
            "CLEPSYDRA_STORE": self.store,
            "CLEPSYDRA_LOG_LEVEL": "warning",
            "BENCHMARK_FOLDER": str(self.folder),
            "PYTHONPATH": self._python_path,
        }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_server(address: str) -> None:
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=30)


def wait_until(condition: Callable[[], bool], timeout_s: float = 600.0, pause_s: float = 0.005) -> float:
    """Look every few milliseconds; returns the seconds that passed."""
    started = time.perf_counter()
    while not condition():
        if time.perf_counter() - started > timeout_s:
            raise TimeoutError("it did not happen in time")
        time.sleep(pause_s)
    return time.perf_counter() - started


def memory_mib(process: "subprocess.Popen[bytes]") -> float:
    return float(psutil.Process(process.pid).memory_info().rss / 2**20)


def cpu_s(process: "subprocess.Popen[bytes]") -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)
