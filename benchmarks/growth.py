"""`python -m benchmarks.growth`: how figures change with the number of actions in store, of shards, and of workers.

Each line is a fresh installation on SQLite, at default settings but for what is varied. Lines of one table are measured
one after the other: compare them with each other.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.creates import batched_per_s, create_in_batches
from benchmarks.installation import Installation, cpu_s, memory_mib, wait_until
from benchmarks.measures import start_lateness_ms
from clepsydra.core.times import HOUR_US, SECOND_US

_IDLE_S = 10
_LATE_PER_S, _LATE_S = 100, 10

Figures = dict[str, float]


def with_stored(stored: int, drained: int) -> Figures:
    """Beside so many actions of the far future: creating, starting on time, waiting, draining."""
    with tempfile.TemporaryDirectory(prefix="clepsydra-growth-") as folder, Installation(Path(folder)) as installation:
        address = installation.scheduler()
        now_us = time.time_ns() // 1000
        uvloop.run(create_in_batches(address, [now_us + 10 * HOUR_US + n for n in range(stored)]))
        worker = installation.worker()
        wait_until(lambda: _incoming_is_empty(installation), pause_s=0.5)
        figures = {"creates/s": batched_per_s(address, drained)}
        wait_until(lambda: _incoming_is_empty(installation), pause_s=0.5)
        before_s = cpu_s(worker)
        time.sleep(_IDLE_S)
        figures["idle, % of a core"] = (cpu_s(worker) - before_s) / _IDLE_S * 100
        late_ms = start_lateness_ms(installation, address, _LATE_PER_S, _LATE_S)
        figures["late, median ms"] = late_ms[len(late_ms) // 2]
        figures["late, 99 % ms"] = late_ms[len(late_ms) * 99 // 100]
        installation.stop(worker)
        figures |= _drained(installation, address, drained, 1)
        installation.audit_is_clean()
        return figures


def with_shards(shards: int, drained: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="clepsydra-growth-") as folder:
        loops = ("--set", f"worker.loops={shards}")
        with Installation(Path(folder), shards=shards) as installation:
            address = installation.scheduler()
            worker = installation.worker(*loops)
            time.sleep(3)
            before_s = cpu_s(worker)
            time.sleep(_IDLE_S)
            figures = {"idle, % of a core": (cpu_s(worker) - before_s) / _IDLE_S * 100}
            installation.stop(worker)
            figures |= _drained(installation, address, drained, 1, *loops)
            installation.audit_is_clean()
            return figures


def with_workers(workers: int, drained: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="clepsydra-growth-") as folder, Installation(Path(folder)) as installation:
        figures = _drained(installation, installation.scheduler(), drained, workers)
        installation.audit_is_clean()
        return figures


def _drained(installation: Installation, address: str, count: int, workers: int, *flags: str) -> Figures:
    """A backlog is made, and then drained, from the first execution to the last."""
    before = installation.executed()
    now_us = time.time_ns() // 1000
    uvloop.run(create_in_batches(address, [now_us - SECOND_US] * count))
    started = [installation.worker(*flags) for _ in range(workers)]
    wait_until(lambda: installation.executed() > before)
    begun_at, already = time.perf_counter(), installation.executed() - before
    wait_until(lambda: installation.executed() - before >= count)
    took_s = time.perf_counter() - begun_at
    memory = max(memory_mib(worker) for worker in started)
    for worker in started:
        installation.stop(worker)
    return {"executed/s": (count - already) / took_s, "MiB of a worker": memory}


def _incoming_is_empty(installation: Installation) -> bool:
    return '"incoming_rows": 0,' in installation.command("stats", "--json")


def _table(title: str, varied: list[int], measure: Callable[[int], Figures]) -> Table:
    lines = {number: measure(number) for number in varied}
    table = Table(title)
    for figure in lines[varied[0]]:
        table.add_column(figure, justify="right")
    for number, figures in lines.items():
        table.add_row(
            f"{number:,}", *(f"{value:,.1f}" if value < 100 else f"{value:,.0f}" for value in figures.values())
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--stored", type=int, nargs="+", default=[0, 10_000, 100_000, 1_000_000])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--drained", type=int, default=30_000, help="actions created and drained (default 30000)")
    chosen = parser.parse_args()
    console = Console(width=120)
    console.print(_table("actions in store", chosen.stored, lambda number: with_stored(number, chosen.drained)))
    console.print(_table("shards", chosen.shards, lambda number: with_shards(number, chosen.drained)))
    console.print(_table("workers", chosen.workers, lambda number: with_workers(number, chosen.drained)))


if __name__ == "__main__":
    main()
