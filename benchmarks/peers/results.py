"""What was measured, as it goes into a file: every measurement of every round, and all that is needed to judge it."""

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]


class Measurement(NamedTuple):
    """One case of one tool in one round: figures, or why there are none."""

    round: int
    case: str
    # Whose settings: "default" or "best".
    variant: str
    tool: str
    figures: dict[str, float]
    took_s: float
    error: str | None = None


class Spread(NamedTuple):
    """A figure over the rounds."""

    median: float
    least: float
    most: float
    rounds: int


class Results:
    def __init__(self, about: Document, measurements: Iterable[Measurement] = ()) -> None:
        self.about = about
        self.measurements = list(measurements)

    @classmethod
    def read(cls, path: Path) -> "Results":
        document = json.loads(path.read_text())
        return cls(document["about"], [Measurement(**measured) for measured in document["measurements"]])

    def write(self, path: Path) -> None:
        document = {"about": self.about, "measurements": [measured._asdict() for measured in self.measurements]}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n")

    def values(self, case: str, variant: str, tool: str, figure: str) -> list[float]:
        return [
            measured.figures[figure]
            for measured in self.measurements
            if (measured.case, measured.variant, measured.tool) == (case, variant, tool) and figure in measured.figures
        ]

    def spread(self, case: str, variant: str, tool: str, figure: str) -> Spread | None:
        values = self.values(case, variant, tool, figure)
        return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None

    def errors(self, case: str, variant: str, tool: str) -> list[str]:
        return [
            measured.error
            for measured in self.measurements
            if (measured.case, measured.variant, measured.tool) == (case, variant, tool) and measured.error
        ]

    def tools(self) -> list[str]:
        """Ours first."""
        return [*self.ours(), *self.peers()]

    def ours(self) -> list[str]:
        return [name for name, described in self.about["tools"].items() if described["ours"]]

    def peers(self) -> list[str]:
        return [name for name, described in self.about["tools"].items() if not described["ours"]]


def machine() -> Document:
    """What the figures were taken on, and what a sync of its disk takes."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(Path(tempfile.gettempdir())),
        "sync_ms": _sync_ms(),
        "load_at_start": os.getloadavg()[0],
    }


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


def _sync_ms(tries: int = 100) -> float:
    """The median time of a small write that is on disk."""
    taken_s = []
    with tempfile.TemporaryFile() as file:
        for _ in range(tries):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            taken_s.append(time.perf_counter() - began)
    return statistics.median(taken_s) * 1000
