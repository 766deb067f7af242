"""The bounded pool of attempts: a place is taken before an attempt begins, and given back when it has ended.

Outcomes that wait to be written have as many places of their own, so that the store writes some while others are
executed; beyond that they take the places of attempts. So neither can grow without limit, however slow the store is.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock, seconds
from clepsydra.core.moments import END_OF_TIME_US
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.finisher import Finisher
from clepsydra.worker.handling import BatchHandler
from clepsydra.worker.relay import Relay
from clepsydra.worker.result import Result, failure
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets
from clepsydra.worker.usual import Ended, ended_at

NOT_EXTENDED = Result(action_pb2.Attempt.INTERRUPTION, "its lease could not be extended")
NOT_STARTED = Result(action_pb2.Attempt.INTERRUPTION, "the store took longer to begin it than it may run")
# Whatever cancels the task of an attempt, and is not the pool, was called by its handler.
CANCELLED_ITSELF = failure("its handler cancelled the task that it ran in")
STOPPED = Result(action_pb2.Attempt.INTERRUPTION, "its worker was stopped")


class Pool:
    def __init__(
        self, size: int, targets: Targets, finisher: Finisher, clock: Clock, tally: Tally, log: FilteringBoundLogger
    ) -> None:
        self._size = size
        # Attempts that are being begun, or run; and attempts that have ended and whose outcomes are not yet written.
        self._taken = 0
        self._unwritten = 0
        self._targets = targets
        self._finisher = finisher
        self._clock = clock
        self._tally = tally
        self._log = log
        # In the order in which they started: a set would have another order in every process.
        self._running: dict[Attempt, None] = {}
        # Those that have ended in this turn of the loop, and when.
        self._ending: list[tuple[Attempt, Result]] = []
        self._ending_at: Ended | None = None
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        finisher.when_written = self._written

    @property
    def room(self) -> int:
        return self._size - self._taken - max(0, self._unwritten - self._size)

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def take(self, places: int) -> None:
        assert places <= self.room, "a place is taken before an attempt begins"
        self._taken += places

    def give_back(self, places: int) -> None:
        """Of attempts that did not begin."""
        self._taken -= places
        self._changed.set()

    async def wait_for_room(self, within_s: float | None = None) -> None:
        """Return when there is room, or when the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.room <= 0:
                    self._changed.clear()
                    await self._changed.wait()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Execute attempts whose begin was written. Their places were taken before."""
        now_us, ends_us = self._clock.now_us(), END_OF_TIME_US
        apart: list[Attempt] = []
        together: dict[BatchHandler, list[Attempt]] = {}
        for attempt in attempts:
            attempt.started_us = now_us
            if now_us >= attempt.deadline_us:
                self._end([(attempt, NOT_STARTED)])
                continue
            self._running[attempt] = None
            # A lease ends no later than its attempt must.
            if attempt.lease_ends_us < ends_us:
                ends_us = attempt.lease_ends_us
            request = attempt.request
            handler = None if request is None else self._targets.batch_handler(request)
            if handler is None:
                apart.append(attempt)
            else:
                together.setdefault(handler, []).append(attempt)
        self._tally.begun += len(attempts)
        if apart or together:
            self._watch(ends_us, now_us)
        Relay(self._execute, apart).start()
        for handler, taken in together.items():
            for first in range(0, len(taken), handler.batch):
                self._start_together(handler, taken[first : first + handler.batch])

    def running(self) -> Iterator[Attempt]:
        return iter(tuple(self._running))

    def cancel(self, attempt: Attempt, why: Result) -> None:
        """Cut an attempt short; one that is executed with others leaves them, and they go on."""
        if attempt.task is None or attempt.why_cancelled is not None:
            return
        attempt.why_cancelled = why
        if attempt.companions is None:
            attempt.task.cancel()
            return
        attempt.context.cancelled = True
        del attempt.companions[attempt]
        if not attempt.companions:
            attempt.task.cancel()
        self._end([(attempt, why)])

    async def drained(self) -> None:
        """Wait until nothing runs any more."""
        while self._running:
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        for attempt in self.running():
            self.cancel(attempt, STOPPED)

    def _watch(self, ends_us: int, now_us: int) -> None:
        """One timer for all: it goes off when the first of them may have to be cut short, and then looks at each."""
        if self._timer is not None:
            if self._timer_us <= ends_us:
                return
            self._timer.cancel()
        self._timer_us = ends_us
        delay_s = max(0.0, seconds(ends_us - now_us))
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._cut_short)

    def _cut_short(self) -> None:
        """Cancel what has reached the end of its timeout or lease, and wait for the next one's."""
        self._timer, now_us = None, self._clock.now_us()
        for attempt in self.running():
            if now_us >= attempt.deadline_us:
                timeout_s = seconds(attempt.deadline_us - attempt.started_us)
                text = f"it did not end within its timeout of {timeout_s:.3g} s"
                self.cancel(attempt, Result(action_pb2.Attempt.TIMEOUT, text))
            elif now_us >= attempt.lease_ends_us:
                self.cancel(attempt, NOT_EXTENDED)
        ends_us = [attempt.ends_us for attempt in self._running if attempt.why_cancelled is None]
        if ends_us:
            self._watch(min(ends_us), now_us)

    async def _execute(self, attempt: Attempt) -> None:
        try:
            request = attempt.request
            if request is not None:
                result = await self._targets.handle(request, attempt)
            else:
                result = await self._targets.execute(attempt.spec, attempt.context)
        except asyncio.CancelledError:
            result = attempt.why_cancelled or CANCELLED_ITSELF
        self._end_soon(attempt, result)

    def _start_together(self, handler: BatchHandler, attempts: list[Attempt]) -> None:
        companions = dict.fromkeys(attempts)
        task = asyncio.get_running_loop().create_task(self._execute_together(handler, attempts))
        for attempt in attempts:
            attempt.task, attempt.companions = task, companions

    async def _execute_together(self, handler: BatchHandler, attempts: list[Attempt]) -> None:
        try:
            requests = [attempt.request for attempt in attempts if attempt.request is not None]
            results = await self._targets.execute_together(handler, requests, attempts)
        except asyncio.CancelledError:
            results = [CANCELLED_ITSELF] * len(attempts)
        self._end(
            (attempt, result)
            for attempt, result in zip(attempts, results, strict=True)
            if attempt.why_cancelled is None
        )

    def _end_soon(self, attempt: Attempt, result: Result) -> None:
        """End it with all others that end before the loop turns to anything else, and within the same moment."""
        # From here on nothing can cut it short, and the task may already be that of another.
        attempt.task = None
        moment = ended_at(self._clock.now_us())
        if moment is not self._ending_at:
            self._end_those()
            self._ending_at = moment
        if not self._ending:
            asyncio.get_running_loop().call_soon(self._end_those)
        self._ending.append((attempt, result))

    def _end_those(self) -> None:
        if self._ending:
            assert self._ending_at is not None
            ending, self._ending = self._ending, []
            self._end(ending, self._ending_at)

    def _end(self, attempts: Iterable[tuple[Attempt, Result]], moment: Ended | None = None) -> None:
        """From here on nothing can cut them short: their outcomes are on their way."""
        ended = []
        for attempt, result in attempts:
            # Nothing is left in a circle with it.
            attempt.task = attempt.companions = None
            if attempt.extension is not None:
                # Its row is on its way too, by an extension of its lease; the outcome follows that.
                attempt.extension.add_done_callback(partial(self._end_extended, attempt, result))
                continue
            self._running.pop(attempt, None)
            ended.append((attempt, result))
        self._taken -= len(ended)
        self._unwritten += len(ended)
        self._finisher.ended(ended, moment or ended_at(self._clock.now_us()))
        self._changed.set()

    def _end_extended(self, attempt: Attempt, result: Result, _extension: "asyncio.Future[None]") -> None:
        self._end([(attempt, result)])

    def _written(self, places: int) -> None:
        self._unwritten -= places
        self._changed.set()
