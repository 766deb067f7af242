"""Waits that the cases have in common."""

import time
from collections.abc import Callable, Sequence

from benchmarks.peers.setup import Setup, Worker

# From the start of workers to the first job that they execute, at most.
FIRST_S = 60.0
LOOK_S = 0.05


def wait_up_to(condition: Callable[[], bool], limit_s: float, every_s: float = LOOK_S) -> None:
    """Look again and again until it is so, or the time is over."""
    ends = time.perf_counter() + limit_s
    while not condition() and time.perf_counter() < ends:
        time.sleep(every_s)


def all_alive(workers: Sequence[Worker]) -> bool:
    """Raises what a worker said that has ended."""
    for worker in workers:
        worker.check_alive()
    return True


def fill_with_due(setup: Setup, count: int) -> None:
    """A backlog, with the store at rest."""
    setup.ask("fill", setup.tool.creates, 600.0, count=count, lead_ms=-1_000)
    setup.tidy()
