"""How late jobs are started that are spread over some seconds, and what a worker costs that waits for them."""

import statistics
import time

from benchmarks.peers import job_lines
from benchmarks.peers.cases.waiting import wait_up_to
from benchmarks.peers.places import Places
from benchmarks.peers.setup import Setup, Worker, now_us
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

# A worker that has said that it is ready, or has done its work, is given this long to come to rest.
_REST_S = 1.5
# What has not been started so long after its time is not waited for.
_TIMEOUT_S = 10.0


def lateness(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    """On a store that holds nothing else."""
    with places.empty(tool) as setup:
        setup.ask("install", settings)
        return _lateness(setup, settings, sizes)


def lateness_in_full_store(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> dict[str, float]:
    """The same beside many jobs of the far future. What an idle worker costs then is asked of ours only."""
    with places.full(tool, sizes.stored) as setup:
        return _lateness(setup, settings, sizes if tool.is_ours else sizes._replace(idle_s=0.0))


def _lateness(setup: Setup, settings: Settings, sizes: Sizes) -> dict[str, float]:
    if setup.tool.worker_comes_last:
        first_us = _create(setup, sizes)
        worker = _working(setup, settings, first_us)
        _wait_for_all(setup, sizes, first_us)
        idle = _idle(setup, worker, sizes)
    else:
        worker = setup.work(settings)
        worker.wait_until_ready()
        idle = _idle(setup, worker, sizes)
        _wait_for_all(setup, sizes, _create(setup, sizes))
    setup.check(settings)
    return idle | _percentiles(setup, sizes.late_jobs)


def _create(setup: Setup, sizes: Sizes) -> int:
    """Returns when the first job is due, which must not have come yet."""
    tool, count = setup.tool, sizes.late_jobs
    lead_ms = tool.lead_ms + round(count / tool.pace_per_s * 1_000)
    made = setup.ask(
        "create",
        tool.creates,
        mode="in flight" if "bulk" in tool.cannot else "bulk",
        count=count,
        lead_ms=lead_ms,
        step_us=round(sizes.spread_s * 1_000) // count * 1_000,
    )
    first_us: int = made["first_us"]
    if now_us() > first_us:
        raise RuntimeError(f"the first job was due before all were created, {lead_ms / 1000:g} s after they were begun")
    return first_us


def _working(setup: Setup, settings: Settings, first_us: int) -> Worker:
    worker = setup.work(settings)
    worker.wait_until_ready()
    if now_us() > first_us:
        raise RuntimeError("the first job was due before the worker was ready")
    return worker


def _wait_for_all(setup: Setup, sizes: Sizes, first_us: int) -> None:
    limit_s = (first_us - now_us()) / 1e6 + sizes.spread_s + _TIMEOUT_S
    wait_up_to(lambda: setup.executed() >= sizes.late_jobs, limit_s)


def _percentiles(setup: Setup, count: int) -> dict[str, float]:
    late_ms = sorted((run.started_us - run.planned_us) / 1000 for run in job_lines.runs(setup.records).values())
    if not late_ms:
        raise RuntimeError(f"none of {count} jobs was started")
    if setup.tool.is_ours and (len(late_ms) < count or late_ms[0] < 0):
        raise RuntimeError(f"{len(late_ms)} of {count} jobs were started, the earliest {late_ms[0]:.3f} ms late")
    return {
        "jobs": count,
        "ran": len(late_ms),
        "earliest_ms": late_ms[0],
        "median_ms": statistics.median(late_ms),
        "p99_ms": late_ms[len(late_ms) * 99 // 100],
        "most_ms": late_ms[-1],
    }


def _idle(setup: Setup, worker: Worker, sizes: Sizes) -> dict[str, float]:
    """Of a core, the worker itself and the server on its behalf: nobody else uses it."""
    time.sleep(_REST_S)
    if not sizes.idle_s:
        return {}
    before_s, server_before_s, began = worker.cpu_s(), setup.server_cpu_s(), time.perf_counter()
    time.sleep(sizes.idle_s)
    passed_s = time.perf_counter() - began
    return {
        "idle_cpu_percent": (worker.cpu_s() - before_s) / passed_s * 100,
        "idle_server_cpu_percent": (setup.server_cpu_s() - server_before_s) / passed_s * 100,
        "idle_mb": worker.memory_mb(),
    }
