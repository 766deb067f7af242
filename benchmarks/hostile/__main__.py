"""`python -m benchmarks.hostile`: each kind of hostile caller against a real scheduler, for a while.

For each kind it prints how much the scheduler's memory grew, and how long the calls of a well-behaved caller took
meanwhile, beside the same without hostile callers. Everything stays on this machine's loopback.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.hostile.kinds import KINDS
from benchmarks.installation import Installation, memory_mib

GROWTH_MIB_MAX = 200.0
P99_MS_MAX = 100.0

_QUIET = "nobody"


class Memory:
    """Looks at the memory of a process until it is stopped, and keeps the most that it saw."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._stop = threading.Event()
        self.first_mib = self.most_mib = memory_mib(process)
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            self.most_mib = max(self.most_mib, memory_mib(self._process))

    def growth_mib(self) -> float:
        self._stop.set()
        self._thread.join()
        return self.most_mib - self.first_mib


def measure(kind: str, seconds: float, callers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="clepsydra-hostile-") as folder, Installation(Path(folder)) as installation:
        address = installation.scheduler()
        [scheduler] = installation.processes
        _run("well_behaved", address, "2")
        memory = Memory(scheduler)
        hostile = [] if kind == _QUIET else [_start("caller", kind, address, str(seconds + 1)) for _ in range(callers)]
        try:
            latency = json.loads(_run("well_behaved", address, str(seconds)))
        finally:
            growth = memory.growth_mib()
            for process in hostile:
                process.kill()
                process.wait()
        installation.audit_is_clean()
        return {"growth_mib": growth, **latency}


def _line(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"benchmarks.hostile.{module}", *arguments]


def _start(module: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(_line(module, *arguments))


def _run(module: str, *arguments: str) -> str:
    return subprocess.run(_line(module, *arguments), check=True, capture_output=True, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each kind goes on (default 60)")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="only this kind; can be repeated")
    parser.add_argument("--callers", type=int, default=1, help="hostile processes at once (default 1)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = parser.parse_args()
    table = Table("hostile callers", title=f"{chosen.seconds:g} s each")
    for column in ("growth, MiB", "calls", "failed", "median, ms", "99 %, ms", "most, ms", "within limits"):
        table.add_column(column, justify="right")
    console, figures = Console(width=120), {}
    for kind in (_QUIET, *(chosen.kind or KINDS)):
        console.print(f"{kind} …", style="dim")
        figures[kind] = taken = measure(kind, chosen.seconds, chosen.callers)
        within = taken["growth_mib"] < GROWTH_MIB_MAX and taken["p99_ms"] < P99_MS_MAX and not taken["failed"]
        shown = (f"{taken[name]:,.1f}" for name in ("growth_mib", "calls", "failed", "p50_ms", "p99_ms", "most_ms"))
        table.add_row(kind, *shown, "yes" if within else "no")
    console.print(table)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
