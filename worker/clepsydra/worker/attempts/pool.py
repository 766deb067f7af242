"""The bounded pool of attempts: a place is taken before an attempt begins, and given back when it has ended.

Outcomes that wait to be written have as many places of their own, so that the store writes some while others are
executed; beyond that they take the places of attempts. So neither can grow without limit, however slow the store is.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.clock import Clock
from clepsydra.core.lifecycle import end_time_us
from clepsydra.core.times import END_OF_TIME_US, seconds
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.completer import Completer
from clepsydra.worker.attempts.dispatch import CANCELLED, Dispatcher, Executed
from clepsydra.worker.running import RunningAttempt
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets

NOT_EXTENDED = Result(action_pb2.Attempt.INTERRUPTION, "its lease could not be extended")
NOT_STARTED = Result(action_pb2.Attempt.INTERRUPTION, "the store took longer to begin it than it may run")
STOPPED = Result(action_pb2.Attempt.INTERRUPTION, "its worker was stopped")


class Pool:
    def __init__(
        self,
        size: int,
        grace_us: int,
        targets: Targets,
        dispatcher: Dispatcher,
        completer: Completer,
        clock: Clock,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._size = size
        # Half the time for writing an outcome is left to a handler that was cancelled, the rest to the store.
        self._cancelled_within_us = grace_us // 2
        # Attempts that are being begun, or run; and attempts that have ended and whose outcomes are not yet written.
        self._taken = 0
        self._unwritten = 0
        self._targets = targets
        self._dispatcher = dispatcher
        self._completer = completer
        self._clock = clock
        self._tally = tally
        self._log = log
        # In the order in which they started: the order of a set would differ from process to process.
        self._running: dict[RunningAttempt, None] = {}
        # Attempts whose outcomes count, although their code goes on. Each keeps its place until its code has ended.
        self._stuck: dict[RunningAttempt, None] = {}
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        completer.when_written = self._written
        dispatcher.when_executed = self._executed

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
        """Places of attempts that did not begin."""
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
        now_us, first_end_us = self._clock.now_us(), END_OF_TIME_US
        started: list[RunningAttempt] = []
        for attempt in attempts:
            attempt.started_us = now_us
            if now_us >= attempt.deadline_us:
                self._complete([(attempt, NOT_STARTED)], end_time_us(now_us))
                continue
            running = RunningAttempt(attempt)
            self._running[running] = None
            started.append(running)
            # A lease ends no later than its attempt must.
            if attempt.lease_ends_us < first_end_us:
                first_end_us = attempt.lease_ends_us
        self._tally.begun += len(attempts)
        if not started:
            return
        self._watch(first_end_us, now_us)
        groups = self._targets.groups(started)
        if len(groups) < len(started):
            for group in groups:
                if len(group) > 1:
                    together = dict.fromkeys(group)
                    for running in group:
                        running.group = together
        self._dispatcher.start(groups)

    def running(self) -> Iterator[RunningAttempt]:
        return iter(tuple(self._running))

    def executing(self) -> Iterator[RunningAttempt]:
        """What runs, and what goes on although its outcome is known."""
        return iter((*self._running, *self._stuck))

    def cancel(self, running: RunningAttempt, result: Result) -> None:
        """Cut an attempt short, with this result. If others are executed by the same call, they go on."""
        if running.has_ended or running.cancelled_with is not None:
            return
        running.cancelled_with = result
        running.context.cancelled = True
        if running.group is None:
            now_us = self._clock.now_us()
            running.gives_up_us = now_us + self._cancelled_within_us
            self._watch(running.gives_up_us, now_us)
            self._dispatcher.cancel(running)
            return
        del running.group[running]
        if not running.group:
            self._dispatcher.cancel(running)
        self._end([(running, result)])

    async def drained(self) -> None:
        """Wait until nothing runs any more, and every outcome was handed to the completer."""
        while self._running:
            self._changed.clear()
            await self._changed.wait()

    def stop(self) -> None:
        for running in self.running():
            self.cancel(running, STOPPED)

    def _watch(self, first_end_us: int, now_us: int) -> None:
        """One timer for all attempts: it goes off when the first of them may have to be cut short."""
        if self._timer is not None:
            if self._timer_us <= first_end_us:
                return
            self._timer.cancel()
        self._timer_us = first_end_us
        delay_s = max(0.0, seconds(first_end_us - now_us))
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._cut_short)

    def _cut_short(self) -> None:
        """Cancel what has reached the end of its timeout or lease, and wait for the next end."""
        self._timer, now_us, next_us = None, self._clock.now_us(), END_OF_TIME_US
        for running in self.running():
            attempt = running.attempt
            if running.cancelled_with is not None:
                if now_us >= running.gives_up_us:
                    self._give_up(running, running.cancelled_with)
                    continue
                next_us = min(next_us, running.gives_up_us)
            elif now_us >= attempt.deadline_us:
                timeout_s = seconds(attempt.deadline_us - attempt.started_us)
                text = f"it did not end within its timeout of {timeout_s:.3g} s"
                self.cancel(running, Result(action_pb2.Attempt.TIMEOUT, text))
            elif now_us >= attempt.lease_ends_us:
                self.cancel(running, NOT_EXTENDED)
            else:
                next_us = min(next_us, attempt.deadline_us, attempt.lease_ends_us)
        if next_us < END_OF_TIME_US:
            self._watch(next_us, now_us)

    def _give_up(self, running: RunningAttempt, result: Result) -> None:
        """A cancelled attempt goes on, or its loop is blocked: its outcome is written, but its place stays taken."""
        if running.has_ended:
            return
        self._stuck[running] = None
        self._taken += 1
        self._log.warning(
            "a handler goes on although its attempt was cancelled, and keeps a place in the pool",
            action=running.attempt.action.action_id,
            attempt=running.attempt.id,
            places_kept=len(self._stuck),
        )
        self._end([(running, result)])

    def _executed(self, executed: list[Executed]) -> None:
        """These executions have ended, all at this moment."""
        ended: list[tuple[Attempt, Result]] = []
        for group, results in executed:
            for running, result in zip(group, results, strict=True):
                if running.has_ended:
                    self._code_has_ended(running)
                    continue
                if result is CANCELLED and running.cancelled_with is not None:
                    result = running.cancelled_with
                running.has_ended, running.group = True, None
                if running.extension is not None:
                    self._end([(running, result)])
                    continue
                del self._running[running]
                ended.append((running.attempt, result))
        self._complete(ended, end_time_us(self._clock.now_us()))

    def _code_has_ended(self, running: RunningAttempt) -> None:
        """The attempt ended earlier: its place is free if its code kept it."""
        if running in self._stuck:
            del self._stuck[running]
            self.give_back(1)

    def _end(self, ending: Iterable[tuple[RunningAttempt, Result]]) -> None:
        """From here on nothing can cancel them: their outcomes are to be written."""
        ended = []
        for running, result in ending:
            running.has_ended, running.group = True, None
            if running.extension is not None:
                # The row is moving, so the outcome is written after that.
                running.extension.add_done_callback(partial(self._end_after_extension, running, result))
                continue
            self._running.pop(running, None)
            ended.append((running.attempt, result))
        self._complete(ended, end_time_us(self._clock.now_us()))

    def _end_after_extension(self, running: RunningAttempt, result: Result, _extension: "asyncio.Future[None]") -> None:
        self._end([(running, result)])

    def _complete(self, ended: Sequence[tuple[Attempt, Result]], ended_us: int) -> None:
        if not ended:
            return
        self._taken -= len(ended)
        self._unwritten += len(ended)
        self._completer.complete(ended, ended_us)
        self._changed.set()

    def _written(self, places: int) -> None:
        self._unwritten -= places
        self._changed.set()
