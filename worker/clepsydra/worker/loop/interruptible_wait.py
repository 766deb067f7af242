"""A wait that somebody else can interrupt."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class InterruptibleWait:
    def __init__(self) -> None:
        self._waiting: asyncio.Task[Any] | None = None
        self._is_interrupted = False

    async def wait(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Wait until the coroutine ends, or `interrupt` is called."""
        self._is_interrupted = False
        self._waiting = asyncio.ensure_future(coroutine)
        try:
            await self._waiting
        except asyncio.CancelledError:
            if not self._is_interrupted:
                raise
        finally:
            self._waiting = None

    def interrupt(self) -> None:
        if self._waiting is not None:
            self._is_interrupted = True
            self._waiting.cancel()
