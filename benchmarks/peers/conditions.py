"""What figures were taken on, and who disturbed them."""

import os
import platform
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers import installed
from benchmarks.peers.results import Document
from benchmarks.peers.server import Databases

_LOOK_S = 0.3


def session(databases: Databases) -> Document:
    """The circumstances of a run, or of a part of it: a run that is resumed has several."""
    return {
        "taken_at": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": {
            "cores": os.cpu_count(),
            "processor": _processor(),
            "memory_gb": round(psutil.virtual_memory().total / 1e9),
            # What a distribution or a provider adds to the kernel's version says nothing to others.
            "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
            "file_system": _file_system(Path(tempfile.gettempdir())),
            "sync_ms": _sync_ms(),
            "load_at_start": os.getloadavg()[0],
        },
        "versions": {"clepsydra": _own_version(), **installed.versions(), "postgresql": databases.version()},
        "durability": databases.durability(),
    }


def others_percent() -> float:
    """Of the whole machine, what is in use while the harness does nothing, other guests of its host included."""
    before = psutil.cpu_times()
    time.sleep(_LOOK_S)
    return busy_percent(before, psutil.cpu_times())


def busy_percent(before: Any, after: Any) -> float:
    """Between two looks at psutil's times of all cores. Its own percentages are too large for less than a second."""
    passed = {name: getattr(after, name) - getattr(before, name) for name in after._fields}
    # What guests use is in these too.
    whole = sum(passed.values()) - passed.get("guest", 0.0) - passed.get("guest_nice", 0.0)
    idle = passed["idle"] + passed.get("iowait", 0.0)
    return 100.0 * (1.0 - idle / whole) if whole > 0 else 0.0


def _own_version() -> str:
    """With the commit, where there is one: figures belong to what was measured."""
    line = ["git", "-C", str(installed.HERE), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip()
    return f"{version('clepsydra')} ({commit})" if commit else version("clepsydra")


def _processor() -> str:
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _file_system(folder: Path) -> str:
    mounts = [line.split() for line in _lines("/proc/mounts")]
    over = [(place, kind) for _, place, kind, *_ in mounts if folder.is_relative_to(place)]
    return max(over, key=lambda mount: len(mount[0]))[1] if over else "unknown"


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def _sync_ms(count: int = 100) -> float:
    """The median time of a small write that is on disk."""
    taken_s = []
    with tempfile.TemporaryFile() as file:
        for _ in range(count):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            taken_s.append(time.perf_counter() - began)
    return statistics.median(taken_s) * 1000
