"""What the harness knows of a tool: how to run its driver, its settings for each case, and what it cannot do."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from benchmarks.peers import installed

Settings = Mapping[str, Any]


class Language(StrEnum):
    # Ours, which is measured as it is here.
    OURS = "ours"
    PYTHON = "python"
    NODE = "node"


class StoreKind(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"


@dataclass(frozen=True)
class Tool:
    """One tool on one kind of store. Settings go to its driver as they are here, and are printed with the results."""

    name: str
    store: StoreKind
    language: Language
    # The driver's file in drivers/, without its ending.
    driver: str
    # In a sentence or two: how it works, and what was chosen for it and why. The adapter's docstring.
    about: str
    # A query for the number of due jobs that have not ended.
    unfinished: str
    # Roughly, created one by one: how long before their time the creation of jobs must begin.
    pace_per_s: int
    # What creates jobs.
    creates: Settings = field(default_factory=dict)
    # Workers: as it comes; for a backlog; for jobs on time; for taking up the work of a dead worker.
    default: Settings = field(default_factory=dict)
    drain: Settings = field(default_factory=dict)
    lateness: Settings = field(default_factory=dict)
    recovery: Settings = field(default_factory=dict)
    # What becomes of the work of a dead worker, in words, and for how long it is worth waiting to see it.
    recovers: str = ""
    recovery_wait_s: float = 10.0
    # A backlog of jobs that take a twentieth of a second, for some seconds of work.
    kill_jobs: int = 2_000
    # The name of a case or of a way to create, and why the tool cannot do it.
    cannot: Mapping[str, str] = field(default_factory=dict)
    # How long a worker rests between two looks for due jobs, as it comes and at the least: half of it is its lateness.
    default_pause_s: float = 0.0
    least_pause_s: float = 0.0
    # A running worker does not notice jobs that another process creates.
    worker_comes_last: bool = False
    # How long before the first job is due its creation begins.
    lead_ms: int = 2_000

    @property
    def is_ours(self) -> bool:
        return self.language is Language.OURS

    def described(self) -> dict[str, Any]:
        """What belongs to its figures."""
        uses = ("creates", "default", "drain", "lateness", "recovery")
        return {
            "ours": self.is_ours,
            "store": str(self.store),
            "about": self.about,
            "settings": {use: dict(getattr(self, use)) for use in uses},
            "recovers": self.recovers,
            "cannot": dict(self.cannot),
        }

    def line(self) -> list[str]:
        """The command line of the driver."""
        if self.language is Language.NODE:
            return [str(installed.node()), str(installed.FOLDER / f"{self.driver}.mjs")]
        python = sys.executable if self.is_ours else str(installed.PYTHON)
        return [python, "-m", f"benchmarks.peers.drivers.{self.driver}"]
