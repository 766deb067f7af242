"""Waiting for something to be so, with a limit that only says after how long it will not happen any more."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

TIMEOUT_S = 60.0
_LOOK_S = 0.05


async def until(
    condition: Callable[[], bool | Awaitable[bool]], what: str, timeout_s: float = TIMEOUT_S, look_s: float = _LOOK_S
) -> None:
    """Look again and again until the condition holds; raises AssertionError, with what was waited for."""
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    while not await _holds(condition):
        if asyncio.get_running_loop().time() > deadline_s:
            raise AssertionError(f"after {timeout_s:g} s it still did not happen: {what}")
        await asyncio.sleep(look_s)


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
