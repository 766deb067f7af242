"""A wait that is interrupted ends; a task that is cancelled ends too, even if both happen at once."""

import asyncio

import pytest

from clepsydra.worker.loop.interruptible_wait import InterruptibleWait


async def test_an_interrupted_wait_returns_nothing() -> None:
    wait = InterruptibleWait()
    waiting = asyncio.create_task(wait.wait(asyncio.sleep(3600, "slept")))
    await asyncio.sleep(0)
    wait.interrupt()
    assert await waiting is None


async def test_a_cancellation_at_the_moment_of_an_interruption_is_not_lost() -> None:
    wait = InterruptibleWait()
    waiting = asyncio.create_task(wait.wait(asyncio.sleep(3600, "slept")))
    await asyncio.sleep(0)
    wait.interrupt()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
