"""Executes many attempts in one task for as long as they do not wait.

The task goes through the attempts one after the other. The first of them that waits for something keeps the task for
itself, and those behind it are given a task each before anything else happens. So whatever waits is alone in its task,
and can be cancelled; but a thousand attempts that end at once cost one task, not a thousand.
"""

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import copy_context
from typing import Any

from clepsydra.worker.attempt import Attempt

Execute = Callable[[Attempt], Coroutine[Any, Any, None]]


class Relay:
    def __init__(self, execute: Execute, attempts: Iterable[Attempt]) -> None:
        self._execute = execute
        self._waiting = deque(attempts)
        # The loop itself does not keep a task that waits from being collected.
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._waiting:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._go_through())
            # The loop calls what was planned in order: this comes when the task has ended or waits.
            loop.call_soon(self._start_each)

    async def _go_through(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        # A handler may have cancelled its own task: that must not reach the next one.
        while self._waiting and not task.cancelling():
            attempt = self._waiting.popleft()
            attempt.task = task
            # As a task would run it: what it sets in context variables is not seen by the attempts that share its task.
            execution, run = self._execute(attempt), copy_context().run
            try:
                waits_for = run(execution.send, None)
            except StopIteration:
                continue
            await _go_on(execution, run, waits_for)

    def _start_each(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            attempt = self._waiting.popleft()
            attempt.task = loop.create_task(self._execute(attempt))


@types.coroutine
def _go_on(execution: Coroutine[Any, Any, None], run: Callable[..., Any], waits_for: Any) -> Generator[Any, Any, None]:
    """Run what waits for something to its end, in its own context."""
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
