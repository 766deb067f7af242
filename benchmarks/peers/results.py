"""What was measured, as it goes into a file: every measurement of every round, and all that is needed to judge it."""

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Tool

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
    # What others used of the machine just before.
    disturbed_percent: float = 0.0

    @property
    def key(self) -> tuple[int, str, str, str]:
        return self.round, self.case, self.variant, self.tool


class Spread(NamedTuple):
    """A figure over the rounds."""

    median: float
    least: float
    most: float
    rounds: int


class NotComparable(Exception):
    """Figures of a file and those that are to be added do not belong together: the text says why."""


class Results:
    def __init__(self, about: Document, measurements: Iterable[Measurement] = ()) -> None:
        self.about = about
        self.measurements = list(measurements)

    @classmethod
    def begun(cls, sizes: Sizes) -> "Results":
        """Nothing yet."""
        return cls({"sizes": sizes._asdict(), "sessions": [], "tools": {}, "left_out": {}, "took_s": 0.0})

    @classmethod
    def read(cls, path: Path) -> "Results":
        document = json.loads(path.read_text())
        return cls(document["about"], [Measurement(**measured) for measured in document["measurements"]])

    def write(self, path: Path) -> None:
        document = {"about": self.about, "measurements": [measured._asdict() for measured in self.measurements]}
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whoever ends the run meanwhile leaves the file whole.
        new = path.with_suffix(".new")
        new.write_text(json.dumps(document, indent=1) + "\n")
        os.replace(new, path)

    def join(self, session: Document, tools: Sequence[Tool], left_out: Mapping[str, str], sizes: Sizes) -> None:
        """Measurements of a session are to be added. Raises if they would not be comparable."""
        if self.about["sizes"] != sizes._asdict():
            raise NotComparable(f"the file has figures of other work than this: {self.about['sizes']}")
        self.about["sessions"].append(session)
        described = {tool.name: tool.described() for tool in tools}
        for name, known in self.about["tools"].items():
            if described.get(name, known)["settings"] != known["settings"]:
                raise NotComparable(f"the file has figures of {name} with other settings: begin anew, without --resume")
        self.about["tools"] |= described
        self.about["left_out"] = {
            name: why for name, why in {**self.about["left_out"], **left_out}.items() if name not in described
        }

    def has(self, *key: object) -> bool:
        """What failed is measured again."""
        return any(measured.key == key and measured.error is None for measured in self.measurements)

    def add(self, measurement: Measurement) -> None:
        """In place of an earlier one that failed."""
        self.measurements = [measured for measured in self.measurements if measured.key != measurement.key]
        self.measurements.append(measurement)
        self.about["took_s"] = sum(measured.took_s for measured in self.measurements)

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
