"""Work on several cores at once, for whatever takes minutes."""

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

ALL_CORES = os.cpu_count() or 1
# So many tasks are under way at most: enough to keep the cores busy, and few enough to stop soon.
_UNDER_WAY = 2 * ALL_CORES


def cores(count: int = ALL_CORES) -> ProcessPoolExecutor:
    """Fresh interpreters: what a test session has loaded or patched does not leak into them."""
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _collect_seldom)


def _collect_seldom() -> None:
    """Much is made here and little of it is garbage in cycles: looking for it often would take a tenth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def in_order_of_completion(
    executor: Executor, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[Result]:
    """The results of the tasks as they come; the next task is asked for when there is room for it."""
    running: set[Future[Result]] = set()
    try:
        for task in tasks:
            running.add(executor.submit(work, task))
            if len(running) >= _UNDER_WAY:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        for future in running:
            future.cancel()
