"""A wait that somebody else can interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class InterruptibleWait:
    def __init__(self) -> None:
        self._waiting: asyncio.Future[Any] | None = None
        self._is_interrupted = False

    async def wait(self, coroutine: Coroutine[Any, Any, T]) -> T | None:
        """Wait until the coroutine returns, or `interrupt` is called; then the result is None."""
        self._is_interrupted = False
        waiting: asyncio.Future[T] = asyncio.ensure_future(coroutine)
        self._waiting = waiting
        try:
            return await waiting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            # The task itself may be cancelled at the same moment.
            if not self._is_interrupted or (task is not None and task.cancelling()):
                raise
            return None
        finally:
            self._waiting = None

    def interrupt(self) -> None:
        if self._waiting is not None:
            self._is_interrupted = True
            self._waiting.cancel()
