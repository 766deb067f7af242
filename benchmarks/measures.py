"""The figures of `make bench`, each as a function of a fresh installation."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.creates import batched_per_s, create_in_batches, empty_per_s, single_per_s
from benchmarks.installation import Installation, cpu_s, free_port, memory_mib, wait_for_server, wait_until
from benchmarks.notes import lateness_us
from clepsydra.core.times import HOUR_US, SECOND_US

Figures = dict[str, float]


def _fresh(measure: Callable[[Installation], Figures]) -> Figures:
    with tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder, Installation(Path(folder)) as installation:
        figures = measure(installation)
        installation.audit_is_clean()
        return figures


def creates(count: int) -> Figures:
    """Creates a second through one scheduler process, beside what an empty call reaches."""

    def measure(installation: Installation) -> Figures:
        address = installation.scheduler()
        port = free_port()
        empty = subprocess.Popen([sys.executable, "-m", "benchmarks.empty_server", str(port)])
        try:
            wait_for_server(f"127.0.0.1:{port}")
            return {
                "empty calls/s, 64 in flight": empty_per_s(f"127.0.0.1:{port}", count // 4, 64),
                "creates/s, 1 in flight": single_per_s(address, count // 20, 1),
                "creates/s, 64 in flight": single_per_s(address, count // 4, 64),
                "creates/s, batches of 500": batched_per_s(address, count),
            }
        finally:
            empty.kill()
            empty.wait()

    return _fresh(measure)


def drain(count: int, workers: int) -> Figures:
    """Due no-op actions executed a second, from the start of the workers to the last outcome written."""

    return _fresh(lambda installation: drained(installation, count, workers))


def drained(installation: Installation, count: int, workers: int) -> Figures:
    address = installation.scheduler()
    now_us = time.time_ns() // 1000
    uvloop.run(create_in_batches(address, [now_us - SECOND_US] * count))
    started = [installation.worker() for _ in range(workers)]
    wait_until(lambda: installation.executed() > 0)
    begun_at, already = time.perf_counter(), installation.executed()
    wait_until(lambda: installation.executed() >= count)
    took_s = time.perf_counter() - begun_at
    return {
        f"executed/s, {workers} worker{'s' if workers > 1 else ''}": (count - already) / took_s,
        f"MiB of a worker, {workers} draining": max(memory_mib(worker) for worker in started),
    }


def lateness(per_s: int, seconds: int, stored: int) -> Figures:
    """How late `clepsydra up` starts attempts, at default settings, with more actions in store."""

    def measure(installation: Installation) -> Figures:
        address, process = installation.up()
        now_us = time.time_ns() // 1000
        uvloop.run(create_in_batches(address, [now_us + 10 * HOUR_US + n for n in range(stored)]))
        late_ms = start_lateness_ms(installation, address, per_s, seconds)
        name = f"ms late, {per_s}/s, {stored:,} in store"
        return {
            f"median {name}": late_ms[len(late_ms) // 2],
            f"99th percentile {name}": late_ms[len(late_ms) * 99 // 100],
            f"most {name}": late_ms[-1],
            f"MiB of `up`, {stored:,} in store": memory_mib(process),
        }

    return _fresh(measure)


def start_lateness_ms(installation: Installation, address: str, per_s: int, seconds: int) -> list[float]:
    """Create actions that are due at a steady pace from soon on, and tell how late each was started, in order."""
    count, first_us = per_s * seconds, time.time_ns() // 1000 + 5 * SECOND_US
    starts_us = [first_us + n * SECOND_US // per_s for n in range(count)]
    uvloop.run(create_in_batches(address, starts_us, "note"))
    # Reading the notes meanwhile would take the processor away from what is measured.
    time.sleep(max(0.0, starts_us[-1] / SECOND_US - time.time()) + 1)
    wait_until(lambda: len(lateness_us(installation.folder)) >= count)
    late_us = sorted(lateness_us(installation.folder))
    if late_us[0] < 0:
        raise AssertionError(f"an attempt started {-late_us[0]} µs early")
    return [each / 1000 for each in late_us]


def idle(seconds: int) -> Figures:
    """What an idle worker with 8 shards costs."""

    def measure(installation: Installation) -> Figures:
        worker = installation.worker()
        wait_until(lambda: sum(lock["state"] == "held" for lock in _locks(installation)) == 8)
        before = cpu_s(worker)
        time.sleep(seconds)
        return {
            "% of a core, idle worker": (cpu_s(worker) - before) / seconds * 100,
            "MiB of an idle worker": memory_mib(worker),
        }

    return _fresh(measure)


def _locks(installation: Installation) -> Any:
    return json.loads(installation.command("locks", "--json"))
