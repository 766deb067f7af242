"""Many runs on several cores: seeds in slices, progress on the way, and one sum at the end."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field

from tests.cores import in_order_of_completion
from tests.simulation.faults import MARKS
from tests.simulation.plan import Plan, draw
from tests.simulation.run import Report, run_plan

# Real SQLite takes several times as long as memory, so fewer seeds run on it.
_SQLITE_EVERY = 20
_SLICE = 20


def is_sqlite(seed: int) -> bool:
    return seed % _SQLITE_EVERY == 7


def plan_of(seed: int, store: str | None = None) -> Plan:
    """The plan of a seed, on the store that it chooses, or on another."""
    return draw(seed, store or ("sqlite" if is_sqlite(seed) else "memory"))


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

    def summary(self) -> list[str]:
        """How attempts ended, and in how many runs each kind of fault and of rare meeting happened."""
        ends = ", ".join(f"{count} {end}" for end, count in self.ends.items())
        return [f"attempts: {ends}", "runs in which it happened:", *(f"{self.marks[mark]:8}  {mark}" for mark in MARKS)]


@dataclass(frozen=True)
class Order:
    """Which seeds to run, on which store, and when to stop."""

    first: int = 0
    last: int | None = None
    seconds: float | None = None
    store: str | None = None
    # So many broken promises end it.
    broken_max: int = 1


def campaign(
    executor: Executor, order: Order, told: Callable[[Campaign], None] = lambda so_far: None, every_s: float = 10.0
) -> Campaign:
    """Run seeds until the last one, until the time is up, or until enough is broken."""
    done = Campaign()
    told_s = done.started_s
    for part in in_order_of_completion(executor, run_slice, _slices(order, done.started_s)):
        done.join(part)
        if time.monotonic() - told_s >= every_s:
            told_s = time.monotonic()
            told(done)
        if len(done.broken) >= order.broken_max:
            break
    return done


def run_slice(task: tuple[range, str | None]) -> Slice:
    seeds, store = task
    part = Slice()
    for seed in seeds:
        part.add(run_plan(plan_of(seed, store)))
    return part


def _slices(order: Order, started_s: float) -> Iterator[tuple[range, str | None]]:
    first, last = order.first, order.last
    while last is None or first < last:
        if order.seconds is not None and time.monotonic() - started_s >= order.seconds:
            return
        until = first + _SLICE if last is None else min(first + _SLICE, last)
        yield range(first, until), order.store
        first = until
