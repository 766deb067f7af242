"""Due no-op jobs executed a second, from when all workers are at it to the last outcome in the store."""

import time

from benchmarks.installation import wait_until
from benchmarks.peers import job_lines
from benchmarks.peers.cases.waiting import FIRST_S, LOOK_S, all_alive, fill_with_due
from benchmarks.peers.places import Places
from benchmarks.peers.setup import Setup, Worker, now_us
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

# Ours must come to the end: what is lost is seen only then.
_END_S = 120.0


def drain_by_one(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    return _drain(places, tool, settings, sizes, workers=1)


def drain_by_two(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    return _drain(places, tool, settings, sizes, workers=2)


def _drain(places: Places, tool: Tool, settings: Settings, sizes: Sizes, workers: int) -> dict[str, float]:
    """A peer that does not come to the end in time is measured by what it has done by then."""
    count = sizes.drain_jobs
    with places.empty(tool) as setup:
        setup.ask("install", settings)
        fill_with_due(setup, count)
        started = [setup.work(settings) for _ in range(workers)]
        wait_until(lambda: all_alive(started) and setup.executed() > 0, FIRST_S)
        ends = time.perf_counter() + (_END_S if tool.is_ours else sizes.drain_s)
        peak_mb = _watched(setup, started, count, ends)
        while (unfinished := setup.unfinished()) and time.perf_counter() < ends:
            time.sleep(LOOK_S / 5)
        ended_us = now_us()
        ran = min(setup.executed(), count - unfinished)
        setup.check(settings)
        if tool.is_ours and (unfinished or len(job_lines.runs(setup.records)) < count):
            raise RuntimeError(f"of {count} jobs only {ran} have run, and {unfinished} are left in the store")
        return _rate(setup, ran, ended_us) | {"jobs": ran, "peak_mb": peak_mb}


def _watched(setup: Setup, workers: list[Worker], count: int, ends: float) -> float:
    """Wait for all jobs to be started, and see how much memory a worker has at most."""
    peak_mb = 0.0
    while True:
        peak_mb = max(peak_mb, *(worker.memory_mb() for worker in workers))
        if setup.executed() >= count or time.perf_counter() >= ends:
            return peak_mb
        time.sleep(LOOK_S)
        all_alive(workers)


def _rate(setup: Setup, ran: int, ended_us: int) -> dict[str, float]:
    """Since the last of the workers began, because they do not come up at the same moment."""
    firsts_us = job_lines.first_starts_us(setup.records)
    began_us = max(firsts_us)
    before = sum(run.started_us < began_us for run in job_lines.runs(setup.records).values())
    counted = ran - before
    return {"executed_per_s": counted / ((ended_us - began_us) / 1e6), "workers": len(firsts_us), "counted": counted}
