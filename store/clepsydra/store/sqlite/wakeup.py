"""Wake-ups for what other processes write: SQLite's data version, checked after the log was written to.

It is read on the writer's connection, where it changes only when other processes commit. One timer serves all waiters,
and only while there are any; a commit of this process wakes its own waiters directly. Where the log cannot be watched,
the version is polled.
"""

import asyncio

import apsw

from clepsydra.store.sqlite.connection.connect import fetch
from clepsydra.store.sqlite.connection.log_watch import LogWatch
from clepsydra.store.sqlite.connection.thread import ConnectionThread
from clepsydra.store.wakeup import Wakeups

# The log is written before the disk is synced, and others can read it only afterwards: the first checks may see
# nothing. And a write is often followed by more.
_FIRST_S = 0.001
_EAGER_S = 0.005
_EAGER_CHECKS = 12
# Without a watch: a quiet store is not worth two hundred checks a second.
_POLL_S = 0.025


class Listener:
    def __init__(
        self, wakeups: Wakeups, writer: apsw.Connection, thread: ConnectionThread, watch: LogWatch | None
    ) -> None:
        self._wakeups = wakeups
        self._writer = writer
        self._thread = thread
        self._watch = watch
        self._waiters = 0
        self._version = -1
        self._eager_checks = 0
        self._is_checking = False
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        self._waiters += 1
        if not self._is_checking:
            self._is_checking = True
            self._check()
        try:
            return await self._wakeups.wait(shard_id, timeout_s)
        finally:
            self._waiters -= 1

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()

    def _check(self) -> None:
        if self._waiters == 0:
            self._is_checking = False
            return
        self._eager_checks -= 1
        # While the writer's thread uses the connection, the next check is soon enough.
        if self._thread.in_use.acquire(blocking=False):
            try:
                self._wake_shards_with_incoming_rows()
            except apsw.Error:
                # The next call of the store reports what is wrong; until then, waiters wait for their timeouts.
                pass
            finally:
                self._thread.in_use.release()
        self._schedule_check()

    def _wake_shards_with_incoming_rows(self) -> None:
        version = self._writer.pragma("data_version")
        if version != self._version:
            self._version = version
            self._eager_checks = _EAGER_CHECKS
            for (shard_id,) in fetch(self._writer, "shards_with_incoming_rows"):
                self._wakeups.wake(shard_id)

    def _schedule_check(self) -> None:
        if self._eager_checks > 0:
            self._check_in(_EAGER_S)
        elif self._watch is None:
            self._check_in(_POLL_S)
        else:
            self._watch.wait(self._log_written)

    def _log_written(self) -> None:
        self._eager_checks = _EAGER_CHECKS
        self._check_in(_FIRST_S)

    def _check_in(self, pause_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._check)
