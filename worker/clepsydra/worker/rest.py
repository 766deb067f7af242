"""A wait that can be cut short from outside."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Rest:
    def __init__(self) -> None:
        self._resting: asyncio.Task[Any] | None = None
        self._is_cut_short = False

    async def wait(self, waiting: Coroutine[Any, Any, Any]) -> None:
        """Wait for it, or until somebody cuts it short."""
        self._is_cut_short = False
        self._resting = asyncio.ensure_future(waiting)
        try:
            await self._resting
        except asyncio.CancelledError:
            if not self._is_cut_short:
                raise
        finally:
            self._resting = None

    def cut_short(self) -> None:
        if self._resting is not None:
            self._is_cut_short = True
            self._resting.cancel()
