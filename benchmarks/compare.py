"""`python -m benchmarks.compare OLD NEW`: is one revision slower than another?

Both are measured in turns in the same run, the order changing from round to round, because the speed of a shared
machine changes within minutes. A revision is any name that git knows, or `.` for the working tree. What counts is the
ratio of medians, new to old, turned so that less than 1 is a loss; with `--least` a smaller one fails the command.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.creates import batched_per_s, create_in_batches, single_per_s
from benchmarks.installation import Installation, cpu_s, wait_until
from benchmarks.measures import start_lateness_ms
from benchmarks.peers.server import Databases, running
from benchmarks.revisions import Revision

_HOUR_US = 3600 * 1_000_000
_SHARDS = 8
_LATENESS_PER_S = 200

# By figure, and then by revision, the old one first: what each round measured.
Taken = dict[str, tuple[list[float], list[float]]]


class Bench:
    def __init__(self, revisions: tuple[Revision, Revision], databases: Databases | None, size: float) -> None:
        self._revisions = revisions
        self._databases = databases
        self._size = size
        self._made = 0

    def creates(self, rounds: int, taken: Taken) -> None:
        """Both schedulers run all the while, and are called in turns."""
        with self._installation(0) as old, self._installation(1) as new:
            addresses = old.scheduler(), new.scheduler()
            single, bulk = round(6_000 * self._size), round(60_000 * self._size)
            for number in range(-1, rounds):
                for which in _order(number):
                    measured = {
                        "creates/s, 64 in flight": single_per_s(addresses[which], single, 64),
                        "creates/s, in batches of 500": batched_per_s(addresses[which], bulk),
                    }
                    if number >= 0:
                        _take(taken, measured, which)

    def drain(self, rounds: int, taken: Taken, *, on_postgres: bool = False, handler: str = "noop") -> None:
        """No-ops that are due, executed by one worker: from the first to the last of them."""
        count = round(40_000 * self._size)
        name = f"executed/s, {'PostgreSQL' if on_postgres else 'SQLite'}{', batches' if handler != 'noop' else ''}"
        for number in range(rounds):
            for which in _order(number):
                with self._installation(which, on_postgres=on_postgres) as installation:
                    address = installation.scheduler()
                    uvloop.run(create_in_batches(address, [_now_us() - 1_000_000] * count, handler))
                    _take(taken, {name: _drained_per_s(installation, count)}, which)

    def drain_batches(self, rounds: int, taken: Taken) -> None:
        self.drain(rounds, taken, handler="noop-batch")

    def drain_on_postgres(self, rounds: int, taken: Taken) -> None:
        self.drain(rounds, taken, on_postgres=True)

    def lateness(self, rounds: int, taken: Taken, *, on_postgres: bool = False) -> None:
        """How late `clepsydra up` starts 200 actions a second, with more in store."""
        store = "PostgreSQL" if on_postgres else "SQLite"
        for number in range(rounds):
            for which in _order(number):
                with self._installation(which, on_postgres=on_postgres) as installation:
                    address, _ = installation.up()
                    far_us = _now_us() + 10 * _HOUR_US
                    uvloop.run(create_in_batches(address, [far_us + n for n in range(round(20_000 * self._size))]))
                    late_ms = start_lateness_ms(installation, address, _LATENESS_PER_S, round(10 * self._size) or 1)
                    measured = {
                        f"ms late in the median, {store}": late_ms[len(late_ms) // 2],
                        f"ms late at the 99th percentile, {store}": late_ms[len(late_ms) * 99 // 100],
                    }
                    _take(taken, measured, which)

    def lateness_on_postgres(self, rounds: int, taken: Taken) -> None:
        self.lateness(rounds, taken, on_postgres=True)

    def idle(self, rounds: int, taken: Taken) -> None:
        """Both workers idle at the same time, each on its own store with actions of the far future in it."""
        with self._installation(0) as old, self._installation(1) as new:
            workers = []
            for installation in (old, new):
                far_us = _now_us() + 10 * _HOUR_US
                uvloop.run(create_in_batches(installation.scheduler(), [far_us] * round(20_000 * self._size)))
                workers.append(installation.worker())
            time.sleep(20)
            for _ in range(rounds):
                before = [cpu_s(worker) for worker in workers]
                time.sleep(10 * self._size)
                for which, worker in enumerate(workers):
                    used_s = cpu_s(worker) - before[which]
                    _take(taken, {"% of a core, idle worker": used_s / (10 * self._size) * 100}, which)

    @contextlib.contextmanager
    def _installation(self, which: int, *, on_postgres: bool = False) -> Iterator[Installation]:
        self._made += 1
        database = f"compare_{self._made}"
        with tempfile.TemporaryDirectory(prefix="clepsydra-compare-") as folder:
            store = None
            if on_postgres:
                assert self._databases is not None
                store = self._databases.create(database)
            revision = self._revisions[which]
            try:
                with Installation(Path(folder), store, _SHARDS, python_path=revision.python_path()) as installation:
                    yield installation
                    installation.audit_is_clean()
            finally:
                if on_postgres and self._databases is not None:
                    self._databases.drop(database)


def _drained_per_s(installation: Installation, count: int) -> float:
    installation.worker()
    wait_until(lambda: installation.executed() > 0)
    begun_at, already = time.perf_counter(), installation.executed()
    wait_until(lambda: installation.executed() >= count)
    return (count - already) / (time.perf_counter() - begun_at)


def _order(number: int) -> tuple[int, int]:
    return (0, 1) if number % 2 == 0 else (1, 0)


def _take(taken: Taken, measured: dict[str, float], which: int) -> None:
    for figure, value in measured.items():
        taken[figure][which].append(value)


def _now_us() -> int:
    return time.time_ns() // 1000


def _is_better_if_smaller(figure: str) -> bool:
    return figure.startswith(("ms late", "% of a core"))


def ratio(figure: str, old: list[float], new: list[float]) -> float:
    """New to old, by medians, turned so that less than 1 is a loss.

    >>> ratio("creates/s", [100, 90, 110], [95, 97, 99]), ratio("ms late", [2.0], [1.0])
    (0.97, 2.0)
    """
    before, after = statistics.median(old), statistics.median(new)
    return before / after if _is_better_if_smaller(figure) else after / before


def _table(taken: Taken, names: tuple[str, str]) -> Table:
    table = Table("figure", title="medians, with the least and the most of the rounds")
    for column in (*names, "ratio"):
        table.add_column(column, justify="right")
    for figure, (old, new) in taken.items():
        cells = [f"{statistics.median(each):,.2f} ({min(each):,.2f} to {max(each):,.2f})" for each in (old, new)]
        table.add_row(figure, *cells, f"{ratio(figure, old, new):.3f}")
    return table


CASES: dict[str, Callable[[Bench, int, Taken], None]] = {
    "creates": Bench.creates,
    "drain": Bench.drain,
    "drain-batches": Bench.drain_batches,
    "drain-postgres": Bench.drain_on_postgres,
    "lateness": Bench.lateness,
    "lateness-postgres": Bench.lateness_on_postgres,
    "idle": Bench.idle,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("old", help="a git revision")
    parser.add_argument("new", nargs="?", default=".", help="a git revision, or . for the working tree (default)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured (default 7)")
    parser.add_argument("--cases", default=",".join(CASES), help=f"some of {', '.join(CASES)} (default: all)")
    parser.add_argument("--size", type=float, default=1.0, help="a factor for the work of each round (default 1)")
    parser.add_argument("--least", type=float, help="exit with 1 if a ratio of medians is smaller than this")
    parser.add_argument("--json", type=Path, help="also write every measurement to this file")
    chosen = parser.parse_args()
    cases = chosen.cases.split(",")
    unknown = [case for case in cases if case not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}: choose from {', '.join(CASES)}")
    taken: Taken = defaultdict(lambda: ([], []))
    console = Console(width=160)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clepsydra-revisions-")))
        revisions = Revision(chosen.old, folder), Revision(chosen.new, folder)
        needs_server = any(case.endswith("postgres") for case in cases)
        bench = Bench(revisions, stack.enter_context(running()) if needs_server else None, chosen.size)
        for case in cases:
            console.print(f"{case} …", style="dim")
            CASES[case](bench, chosen.rounds, taken)
    console.print(_table(taken, (chosen.old, chosen.new)))
    if chosen.json:
        chosen.json.write_text(json.dumps(taken, indent=2) + "\n")
    losses = [figure for figure, both in taken.items() if chosen.least and ratio(figure, *both) < chosen.least]
    for figure in losses:
        console.print(f"slower: {figure}", style="bold")
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
