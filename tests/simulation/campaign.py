"""Many runs on several cores: seeds in slices, progress on the way, and one sum at the end."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

from tests.cores import in_order_of_completion
from tests.simulation.run import Report, run_seed

# Real SQLite takes several times as long as memory, so fewer seeds run on it.
_SQLITE_EVERY = 20
_SLICE = 20


def is_sqlite(seed: int) -> bool:
    return seed % _SQLITE_EVERY == 7


def run(seed: int) -> Report:
    """A seed, on the store that it chooses."""
    return run_seed(seed, "sqlite" if is_sqlite(seed) else "memory")


@dataclass
class Slice:
    """What some runs came to, small enough to be sent from one process to another."""

    runs: int = 0
    sqlite_runs: int = 0
    steps: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    broken: list[int] = field(default_factory=list)

    def add(self, report: Report) -> None:
        self.runs += 1
        self.sqlite_runs += report.plan.store == "sqlite"
        self.steps += report.steps
        self.marks.update(dict.fromkeys(report.marks, 1))
        self.ends.update(report.ends)
        if report.violation is not None:
            self.broken.append(report.plan.seed)

    def join(self, other: "Slice") -> None:
        self.runs += other.runs
        self.sqlite_runs += other.sqlite_runs
        self.steps += other.steps
        self.marks.update(other.marks)
        self.ends.update(other.ends)
        self.broken += other.broken


@dataclass
class Campaign(Slice):
    """All runs so far. `marks` counts the runs in which something happened."""

    started_s: float = field(default_factory=time.monotonic)

    def line(self) -> str:
        took_s = time.monotonic() - self.started_s
        return (
            f"{self.runs} runs ({self.sqlite_runs} on SQLite), {self.steps} steps, {self.runs / took_s:.0f} a second, "
            f"{len(self.broken)} broken promises"
        )

    def reports(self) -> Iterator[Report]:
        """The runs that broke a promise, once more."""
        return map(run, sorted(self.broken))


def campaign(
    executor: Executor,
    first: int,
    last: int | None,
    seconds: float | None,
    told: Callable[[Campaign], None],
    every_s: float = 10.0,
) -> Campaign:
    """Run seeds until the last one, or until the time is up; a broken promise ends it."""
    done = Campaign()
    told_s = done.started_s
    for part in in_order_of_completion(executor, run_slice, _slices(first, last, seconds, done.started_s)):
        done.join(part)
        if time.monotonic() - told_s >= every_s:
            told_s = time.monotonic()
            told(done)
        if done.broken:
            break
    return done


def run_slice(seeds: range) -> Slice:
    part = Slice()
    for seed in seeds:
        part.add(run(seed))
    return part


def _slices(first: int, last: int | None, seconds: float | None, started_s: float) -> Iterator[range]:
    while last is None or first < last:
        if seconds is not None and time.monotonic() - started_s >= seconds:
            return
        until = first + _SLICE if last is None else min(first + _SLICE, last)
        yield range(first, until)
        first = until
