"""The wake-up hint for what other processes write: SQLite's data version, looked at when the log was written to.

It is read on the writer's connection, where it changes only for commits of others. One timer serves all waiters, and
only while somebody waits; a commit of this process wakes its own waiters directly. Where the log cannot be watched, the
version is looked at all the time.
"""

import asyncio

import apsw

from clepsydra.store.sqlite.connection import fetch
from clepsydra.store.sqlite.execution import ThreadLane
from clepsydra.store.sqlite.watching import LogWatch
from clepsydra.store.wakeup import Wakeups

# The log is written to before the disk is synced, and only then can others read it: the first looks may see nothing.
# And where something has just arrived more will follow.
_FIRST_S = 0.001
_EAGER_S = 0.005
_EAGER_LOOKS = 12
# Without a watch: a quiet store is not worth two hundred looks a second.
_QUIET_S = 0.025


class Arrivals:
    def __init__(self, hints: Wakeups, writer: apsw.Connection, lane: ThreadLane, watch: LogWatch | None) -> None:
        self._hints = hints
        self._writer = writer
        self._lane = lane
        self._watch = watch
        self._waiters = 0
        self._version = -1
        self._eager_looks = 0
        self._is_looking = False
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        self._waiters += 1
        if not self._is_looking:
            self._is_looking = True
            self._look()
        try:
            return await self._hints.wait(shard_id, timeout_s)
        finally:
            self._waiters -= 1

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()

    def _look(self) -> None:
        if self._waiters == 0:
            self._is_looking = False
            return
        self._eager_looks -= 1
        # While the writer is at work the next look will do.
        if self._lane.in_use.acquire(blocking=False):
            try:
                self._wake_where_something_arrived()
            finally:
                self._lane.in_use.release()
        self._rest()

    def _wake_where_something_arrived(self) -> None:
        version = self._writer.pragma("data_version")
        if version != self._version:
            self._version = version
            self._eager_looks = _EAGER_LOOKS
            for (shard_id,) in fetch(self._writer, "shards_with_arrivals"):
                self._hints.wake(shard_id)

    def _rest(self) -> None:
        """Until the next look is worth it."""
        if self._eager_looks > 0:
            self._look_in(_EAGER_S)
        elif self._watch is None:
            self._look_in(_QUIET_S)
        else:
            self._watch.wait(self._written)

    def _written(self) -> None:
        self._eager_looks = _EAGER_LOOKS
        self._look_in(_FIRST_S)

    def _look_in(self, pause_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look)
