"""Eager tasks: executions that never wait share one task.

The task runs the executions one after the other. The first one that waits for something keeps the task, and each of
those behind it gets a task of its own before anything else happens. So an execution that waits is alone in its task and
can be cancelled, but a thousand executions that end at once cost one task. (`asyncio.eager_task_factory` needs Python
3.12.)
"""

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import copy_context
from typing import Any

from clepsydra.worker.running import Group

Execute = Callable[[Group], Coroutine[Any, Any, None]]


class EagerTasks:
    def __init__(self, execute: Execute, groups: Iterable[Group]) -> None:
        self._execute = execute
        self._waiting = deque(groups)
        # The event loop holds only a weak reference to a task that waits.
        self._task: asyncio.Task[None] | None = None

    @property
    def has_started_all(self) -> bool:
        return not self._waiting

    def take_back(self) -> list[Group]:
        """The groups that were not started, and now never are. May be called from another thread."""
        taken: list[Group] = []
        while (group := self._next()) is not None:
            taken.append(group)
        return taken

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run_through())
        # The loop calls in order, so this is called when the task has ended or waits.
        loop.call_soon(self._start_each)

    async def _run_through(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        # A handler may have cancelled its own task, which must not reach the next execution.
        while not task.cancelling() and (group := self._next()) is not None:
            for running in group:
                running.task = task
            # A copy of the context variables for each, as a task of its own would have.
            execution, run = self._execute(group), copy_context().run
            try:
                waits_for = run(execution.send, None)
            except StopIteration:
                continue
            await _continue(execution, run, waits_for)

    def _start_each(self) -> None:
        loop = asyncio.get_running_loop()
        while (group := self._next()) is not None:
            task = loop.create_task(self._execute(group))
            for running in group:
                running.task = task

    def _next(self) -> Group | None:
        # Another thread may take back what waits, so looking first would not do.
        try:
            return self._waiting.popleft()
        except IndexError:
            return None


@types.coroutine
def _continue(
    execution: Coroutine[Any, Any, None], run: Callable[..., Any], waits_for: Any
) -> Generator[Any, Any, None]:
    """Run an execution that waits for something to its end, with its own context variables."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:
                waits_for = run(execution.throw, error)
            else:
                waits_for = run(execution.send, sent)
    except StopIteration:
        return
