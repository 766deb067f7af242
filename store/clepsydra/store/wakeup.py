"""Wake-ups within one process: something may have come into a shard.

Losing every wake-up costs latency only; one too many costs a read of the shard.
"""

import asyncio


class Wakeups:
    def __init__(self, shards: int) -> None:
        self._events = [asyncio.Event() for _ in range(shards)]

    def wake(self, shard_id: int) -> None:
        # Nobody waits at a shard that does not exist.
        if 0 <= shard_id < len(self._events):
            self._events[shard_id].set()

    def wake_all(self) -> None:
        for event in self._events:
            event.set()

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        """Wait for a wake-up, and use it up: what comes in after this returns sets the next one."""
        event = self._events[shard_id]
        try:
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            return False
        event.clear()
        return True
