"""The work, the same for every tool: one function for each case, from a tool and its settings to figures."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.creates import empty_per_s
from benchmarks.installation import free_port, wait_for_server, wait_until
from benchmarks.peers import records
from benchmarks.peers.places import Places
from benchmarks.peers.setup import Setup, Worker, now_us
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tool import Settings, Tool

Figures = dict[str, float]
Case = Callable[[Places, Tool, Settings, Sizes], Figures]

WAYS = {"single": "single_per_s", "in flight": "in_flight_per_s", "bulk": "bulk_per_s"}
_FIRST_S = 60.0
_LOOK_S = 0.05
# A worker that has said that it is ready is given this long to come to rest.
_REST_S = 2.0
_FUTURE_MS = 3_600_000


def creates(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    """Durable creates a second, of jobs due in an hour."""
    figures: Figures = {}
    with places.empty(tool) as setup:
        setup.ask("install", tool.default)
        for way, figure in WAYS.items():
            if way in tool.cannot:
                continue
            request = {"mode": way, "count": 10_000_000, "seconds": sizes.create_s, "lead_ms": _FUTURE_MS}
            made = setup.ask("create", settings, step_us=1000, first_number=len(figures) * 10_000_000, **request)
            figures[figure] = made["created"] / made["seconds"]
        setup.ask("check", settings)
    if tool.is_ours:
        figures["empty_call_per_s"] = _empty_calls_per_s(round(sizes.create_s * 1_000))
    return figures


def drain_by_one(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    return _drain(places, tool, settings, sizes, workers=1)


def drain_by_two(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    return _drain(places, tool, settings, sizes, workers=2)


def lateness(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    """Jobs spread over some seconds, on a store that holds nothing else; and what the worker costs when idle."""
    with places.empty(tool) as setup:
        setup.ask("install", settings)
        return _lateness(setup, settings, sizes)


def lateness_in_full_store(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    """The same beside many jobs of the far future."""
    with places.full(tool, sizes.stored) as setup:
        return _lateness(setup, settings, sizes)


def kill(places: Places, tool: Tool, settings: Settings, sizes: Sizes) -> Figures:
    """Kill a worker in the midst of a backlog, and start it again at once, as its supervisor would.

    Two workers share the work, where a tool allows that. What was begun when the worker died is either taken up again,
    late or soon, or lost; and what had been executed but not written down is executed again.
    """
    count = max(200, min(sizes.kill_jobs, 4 * tool.pace_per_s))
    with places.empty(tool) as setup:
        setup.ask("install", settings)
        _fill_with_due(setup, count)
        workers = [setup.work(settings)]
        if "drain by two" not in tool.cannot:
            setup.work(settings)
        wait_until(lambda: setup.executed() >= count // 4, _FIRST_S)
        killed_us = now_us()
        workers[0].kill()
        setup.work(settings)
        limit_s = count / tool.pace_per_s * 4 + tool.recovery_wait_s
        _wait_up_to(lambda: setup.executed() >= count and len(records.runs(setup.records)) >= count, limit_s)
        _wait_up_to(lambda: setup.unfinished() == 0, 5.0)
        runs, unfinished = records.runs(setup.records), setup.unfinished()
        setup.__exit__()
        setup.ask("check", settings)
    done = len(runs) >= count
    return {
        "jobs": count,
        "lost": max(0, count - len(runs) - unfinished) if not done else 0,
        "held": unfinished,
        "twice": sum(run.times > 1 for run in runs.values()),
        "waited_s": (now_us() - killed_us) / 1e6,
        **({"done_s": (max(run.started_us for run in runs.values()) - killed_us) / 1e6} if done else {}),
    }


CASES: dict[str, Case] = {
    "creates": creates,
    "drain by one": drain_by_one,
    "drain by two": drain_by_two,
    "lateness": lateness,
    "lateness in a full store": lateness_in_full_store,
    "kill": kill,
}


def _drain(places: Places, tool: Tool, settings: Settings, sizes: Sizes, workers: int) -> Figures:
    """Due jobs executed a second, from when all workers are at it to the last outcome in the store."""
    count = sizes.drain_jobs
    with places.empty(tool) as setup:
        setup.ask("install", settings)
        _fill_with_due(setup, count)
        started = [setup.work(settings) for _ in range(workers)]
        wait_until(lambda: _all_alive(started) and setup.executed() > 0, _FIRST_S)
        ends = time.perf_counter() + sizes.drain_s
        peak_mib = 0.0
        while setup.executed() < count and time.perf_counter() < ends:
            peak_mib = max(peak_mib, *(worker.memory_mib() for worker in started))
            time.sleep(_LOOK_S)
            _all_alive(started)
        while (unfinished := setup.unfinished()) and time.perf_counter() < ends:
            time.sleep(_LOOK_S / 5)
        ended_us = now_us()
        ran = min(setup.executed(), count - unfinished)
        figures = _drained(setup, ran, ended_us) | {"jobs": ran, "peak_mib": peak_mib}
        setup.__exit__()
        setup.ask("check", settings)
        _check_nothing_lost(setup, count, unfinished)
    return figures


def _drained(setup: Setup, ran: int, ended_us: int) -> Figures:
    """The rate since the last of the workers began, and how many were at it."""
    firsts_us = records.first_starts_us(setup.records)
    began_us = max(firsts_us)
    before = sum(run.started_us < began_us for run in records.runs(setup.records).values())
    return {"executed_per_s": (ran - before) / ((ended_us - began_us) / 1e6), "workers": len(firsts_us)}


def _lateness(setup: Setup, settings: Settings, sizes: Sizes) -> Figures:
    tool, count = setup.tool, sizes.late_jobs
    figures: Figures = {}
    if not tool.worker_comes_last:
        worker = _rested(setup, settings)
        figures |= _idle(setup, worker, sizes)
    mode = "in flight" if "bulk" in tool.cannot else "bulk"
    step_us = round(sizes.spread_s * 1_000) // count * 1_000
    lead_ms = tool.lead_ms + round(count / tool.pace_per_s * 1_000)
    setup.ask("create", tool.creates, mode=mode, count=count, lead_ms=lead_ms, step_us=step_us)
    if tool.worker_comes_last:
        worker = setup.work(settings)
    _wait_up_to(lambda: setup.executed() >= count, lead_ms / 1000 + sizes.spread_s + 10.0)
    late_ms = sorted((run.started_us - run.planned_us) / 1000 for run in records.runs(setup.records).values())
    if tool.worker_comes_last:
        time.sleep(_REST_S)
        figures |= _idle(setup, worker, sizes)
    setup.__exit__()
    setup.ask("check", settings)
    if not late_ms:
        raise RuntimeError(f"none of the {count} jobs was started")
    if tool.is_ours and (len(late_ms) < count or late_ms[0] < 0):
        raise RuntimeError(f"{len(late_ms)} of {count} jobs were started, the earliest {late_ms[0]:.3f} ms late")
    return figures | {
        "jobs": count,
        "ran": len(late_ms),
        "earliest_ms": late_ms[0],
        "median_ms": statistics.median(late_ms),
        "p99_ms": late_ms[len(late_ms) * 99 // 100],
        "most_ms": late_ms[-1],
    }


def _rested(setup: Setup, settings: Settings) -> Worker:
    worker = setup.work(settings)
    worker.wait_until_ready()
    time.sleep(_REST_S)
    return worker


def _idle(setup: Setup, worker: Worker, sizes: Sizes) -> Figures:
    before_s, server_before_s, began = worker.cpu_s(), setup.server_cpu_s(), time.perf_counter()
    time.sleep(sizes.idle_s)
    passed_s = time.perf_counter() - began
    return {
        "idle_cpu_percent": (worker.cpu_s() - before_s) / passed_s * 100,
        "idle_server_cpu_percent": (setup.server_cpu_s() - server_before_s) / passed_s * 100,
        "idle_mib": worker.memory_mib(),
    }


def _fill_with_due(setup: Setup, count: int) -> None:
    setup.ask("fill", setup.tool.creates, 600.0, count=count, lead_ms=-1_000)
    setup.tidy()


def _all_alive(workers: list[Worker]) -> bool:
    for worker in workers:
        worker.check_alive()
    return True


def _check_nothing_lost(setup: Setup, count: int, unfinished: int) -> None:
    ran = len(records.runs(setup.records))
    if setup.tool.is_ours and unfinished == 0 and ran < count:
        raise RuntimeError(f"{count - ran} of {count} jobs have not run, and none is left in the store")


def _wait_up_to(condition: Callable[[], bool], limit_s: float) -> None:
    ends = time.perf_counter() + limit_s
    while not condition() and time.perf_counter() < ends:
        time.sleep(_LOOK_S)


def _empty_calls_per_s(count: int) -> float:
    """What Python's gRPC does at most, with the same number of calls in flight."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.empty_server", str(port)])
    try:
        wait_for_server(f"127.0.0.1:{port}")
        return empty_per_s(f"127.0.0.1:{port}", count, 64)
    finally:
        server.kill()
        server.wait()
