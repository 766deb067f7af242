"""The wake-up hint for what other processes write: SQLite's data version.

It is read on the writer's connection, where it changes only for commits of others. One timer serves all waiters, and
only while somebody waits; a commit of this process wakes its own waiters directly.
"""

import asyncio

import apsw

from clepsydra.store.hints import Hints
from clepsydra.store.sqlite.execution import ThreadLane

# Where something has just arrived more will follow; a quiet store is not worth two hundred looks a second.
_EAGER_S = 0.005
_QUIET_S = 0.025
_EAGER_LOOKS = 400


class Arrivals:
    def __init__(self, hints: Hints, writer: apsw.Connection, lane: ThreadLane) -> None:
        self._hints = hints
        self._writer = writer
        self._lane = lane
        self._waiters = 0
        self._version = -1
        self._eager_looks = 0
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        self._waiters += 1
        if self._timer is None:
            self._look()
        try:
            return await self._hints.wait(shard_id, timeout_s)
        finally:
            self._waiters -= 1

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._waiters == 0:
            self._timer = None
            return
        self._eager_looks -= 1
        pause_s = _EAGER_S if self._eager_looks > 0 else _QUIET_S
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look)
        # While the writer is at work the next look will do.
        if self._lane.in_use.acquire(blocking=False):
            try:
                version = self._writer.pragma("data_version")
            finally:
                self._lane.in_use.release()
            if version != self._version:
                self._version = version
                self._eager_looks = _EAGER_LOOKS
                self._hints.wake_all()
