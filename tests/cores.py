"""Work on several cores at once, for whatever takes minutes."""

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

# So many tasks wait for a core at most: enough to keep them busy, and few enough to stop soon.
_AHEAD = 4


def cores(count: int) -> ProcessPoolExecutor:
    """Fresh interpreters: what a test session has loaded or patched does not leak into them."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"))


def in_order_of_completion(
    executor: Executor, work: Callable[[Task], Result], tasks: Iterable[Task]
) -> Iterator[Result]:
    """The results of the tasks as they come; the next task is asked for when there is room for it."""
    running: set[Future[Result]] = set()
    for task in tasks:
        running.add(executor.submit(work, task))
        if len(running) >= _AHEAD:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    for future in running:
        yield future.result()
