"""The bounded pool of attempts: a place is taken before an attempt begins, and given back once its outcome is written.

So neither running attempts nor outcomes that wait for a slow store can grow without limit.
"""

import asyncio
from collections.abc import Iterable, Iterator

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock, seconds
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.finisher import Finisher
from clepsydra.worker.result import Result
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets

NOT_EXTENDED = Result(action_pb2.Attempt.INTERRUPTION, "its lease could not be extended")
NOT_STARTED = Result(action_pb2.Attempt.INTERRUPTION, "the store took longer to begin it than it may run")
STOPPED = Result(action_pb2.Attempt.INTERRUPTION, "its worker was stopped")


class Pool:
    def __init__(
        self, size: int, targets: Targets, finisher: Finisher, clock: Clock, tally: Tally, log: FilteringBoundLogger
    ) -> None:
        self._room = size
        self._targets = targets
        self._finisher = finisher
        self._clock = clock
        self._tally = tally
        self._log = log
        # In the order in which they started: a set would have another order in every process.
        self._running: dict[Attempt, None] = {}
        self._changed = asyncio.Event()
        finisher.when_written = self.give_back

    @property
    def room(self) -> int:
        return self._room

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def take(self, places: int) -> None:
        assert places <= self._room, "a place is taken before an attempt begins"
        self._room -= places

    def give_back(self, places: int) -> None:
        self._room += places
        self._changed.set()

    async def wait_for_room(self) -> None:
        while self._room <= 0:
            self._changed.clear()
            await self._changed.wait()

    def start(self, attempts: Iterable[Attempt]) -> None:
        """Execute attempts whose begin was written. Their places were taken before."""
        loop = asyncio.get_running_loop()
        for attempt in attempts:
            now_us = self._clock.now_us()
            attempt.started_us = now_us
            self._tally.begun += 1
            if now_us >= attempt.deadline_us:
                self._finisher.ended(attempt, NOT_STARTED)
                continue
            self._running[attempt] = None
            attempt.task = loop.create_task(self._execute(attempt))
            self._watch(attempt, now_us)

    def running(self) -> Iterator[Attempt]:
        return iter(tuple(self._running))

    def extended(self, attempt: Attempt, now_us: int) -> None:
        """The attempt's lease has become longer."""
        if attempt.timer is not None:
            attempt.timer.cancel()
            self._watch(attempt, now_us)

    async def drained(self) -> None:
        """Wait until nothing runs any more."""
        while self._running:
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        for attempt in self.running():
            attempt.cancel(STOPPED)

    def _watch(self, attempt: Attempt, now_us: int) -> None:
        ends_us = min(attempt.deadline_us, attempt.lease_ends_us)
        delay_s = max(0.0, seconds(ends_us - now_us))
        attempt.timer = asyncio.get_running_loop().call_later(delay_s, self._time_is_up, attempt)

    def _time_is_up(self, attempt: Attempt) -> None:
        now_us = self._clock.now_us()
        if now_us >= attempt.deadline_us:
            timeout_s = seconds(attempt.deadline_us - attempt.started_us)
            why = Result(action_pb2.Attempt.TIMEOUT, f"it did not end within its timeout of {timeout_s:.3g} s")
            attempt.cancel(why)
        elif now_us >= attempt.lease_ends_us:
            attempt.cancel(NOT_EXTENDED)
        else:  # the timer was early, or the lease has been extended
            self._watch(attempt, now_us)

    async def _execute(self, attempt: Attempt) -> None:
        try:
            result = await self._targets.execute(attempt.spec, attempt.context)
        except asyncio.CancelledError:
            if attempt.why_cancelled is None:
                raise
            result = attempt.why_cancelled
        # From here on nothing can cut it short: its outcome is on its way.
        attempt.task = None
        if attempt.timer is not None:
            attempt.timer.cancel()
            attempt.timer = None
        if attempt.extension is not None:
            await asyncio.shield(attempt.extension)
        self._running.pop(attempt, None)
        self._finisher.ended(attempt, result)
        self._changed.set()
