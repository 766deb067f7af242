"""The bounded pool of attempts: a place is taken before an attempt begins, and given back when it has ended.

Outcomes that wait to be written have as many places of their own, so that the store writes some while others are
executed; beyond that they take the places of attempts. So neither can grow without limit, however slow the store is.
"""

import asyncio
import contextlib
import traceback
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.clock import Clock
from clepsydra.core.lifecycle import end_time_us
from clepsydra.core.times import END_OF_TIME_US, seconds
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.completer import Completer
from clepsydra.worker.attempts.eager_tasks import EagerTasks
from clepsydra.worker.running import Group, RunningAttempt, is_thrown_away
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets
from clepsydra.worker.targets.failures import describe, failure

NOT_EXTENDED = Result(action_pb2.Attempt.INTERRUPTION, "its lease could not be extended")
NOT_STARTED = Result(action_pb2.Attempt.INTERRUPTION, "the store took longer to begin it than it may run")
STOPPED = Result(action_pb2.Attempt.INTERRUPTION, "its worker was stopped")
# Only the pool cancels the task of an attempt; otherwise the handler has done it.
CANCELLED_ITSELF = failure("its handler cancelled the task that it ran in")


class Pool:
    def __init__(
        self, size: int, targets: Targets, completer: Completer, clock: Clock, tally: Tally, log: FilteringBoundLogger
    ) -> None:
        self._size = size
        # Attempts that are being begun, or run; and attempts that have ended and whose outcomes are not yet written.
        self._taken = 0
        self._unwritten = 0
        self._targets = targets
        self._executors = targets.executors
        self._completer = completer
        self._clock = clock
        self._tally = tally
        self._log = log
        # In the order in which they started: the order of a set would differ from process to process.
        self._running: dict[RunningAttempt, None] = {}
        # Those that ended in this iteration of the event loop, and their common end time.
        self._ended: list[tuple[Attempt, Result]] = []
        self._ended_us = 0
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        completer.when_written = self._written

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
        # An execution that may end at once needs no task of its own, unless it waits.
        eager = [group for group in groups if self._executors[group[0].attempt.kind].is_eager]
        if eager:
            EagerTasks(self._execute, eager).start()
        if len(eager) < len(groups):
            loop = asyncio.get_running_loop()
            for group in groups:
                if not self._executors[group[0].attempt.kind].is_eager:
                    task = loop.create_task(self._execute(group))
                    for running in group:
                        running.task = task

    def running(self) -> Iterator[RunningAttempt]:
        return iter(tuple(self._running))

    def cancel(self, running: RunningAttempt, result: Result) -> None:
        """Cut an attempt short, with this result. If others are executed by the same call, they go on."""
        if running.task is None or running.cancelled_with is not None:
            return
        running.cancelled_with = result
        running.context.cancelled = True
        if running.group is None:
            running.task.cancel()
            return
        del running.group[running]
        if not running.group:
            running.task.cancel()
        self._end([(running, result)])

    async def drained(self) -> None:
        """Wait until nothing runs any more, and every outcome was handed to the completer."""
        while self._running or self._ended:
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
        self._timer, now_us = None, self._clock.now_us()
        for running in self.running():
            attempt = running.attempt
            if now_us >= attempt.deadline_us:
                timeout_s = seconds(attempt.deadline_us - attempt.started_us)
                text = f"it did not end within its timeout of {timeout_s:.3g} s"
                self.cancel(running, Result(action_pb2.Attempt.TIMEOUT, text))
            elif now_us >= attempt.lease_ends_us:
                self.cancel(running, NOT_EXTENDED)
        attempts = [running.attempt for running in self._running if running.cancelled_with is None]
        if attempts:
            self._watch(min(min(attempt.deadline_us, attempt.lease_ends_us) for attempt in attempts), now_us)

    async def _execute(self, group: Group) -> None:
        """One call of a target, for one attempt or several. Whatever it raises is the result of its attempts."""
        if len(group) > 1:
            together = dict.fromkeys(group)
            for running in group:
                running.group = together
        try:
            results = await self._executors[group[0].attempt.kind].execute(group)
            assert len(results) == len(group), "each attempt has its own result"
        except asyncio.CancelledError:
            results = [running.cancelled_with or CANCELLED_ITSELF for running in group]
        except BaseException as error:  # SystemExit and the like would end the worker, and leave the attempts hanging
            if is_thrown_away(error, group):
                raise
            results = [_defect(error)] * len(group)
        if len(group) > 1:
            # Those that were cancelled have ended already.
            self._end([pair for pair in zip(group, results, strict=True) if pair[0].cancelled_with is None])
        else:
            self._end_soon(group[0], results[0])

    def _end_soon(self, running: RunningAttempt, result: Result) -> None:
        """End it with all others that end in this iteration of the event loop, and within the same millisecond."""
        # From here on nothing can cancel it, and the task may already execute another attempt.
        running.task = None
        if running.extension is not None:
            self._end([(running, result)])
            return
        ended_us = end_time_us(self._clock.now_us())
        if ended_us != self._ended_us:
            self._end_collected()
            self._ended_us = ended_us
        if not self._ended:
            asyncio.get_running_loop().call_soon(self._end_collected)
        del self._running[running]
        self._ended.append((running.attempt, result))

    def _end_collected(self) -> None:
        if self._ended:
            ended, self._ended = self._ended, []
            self._complete(ended, self._ended_us)

    def _end(self, ending: Iterable[tuple[RunningAttempt, Result]]) -> None:
        """From here on nothing can cancel them: their outcomes are to be written."""
        ended = []
        for running, result in ending:
            running.task = running.group = None
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


def _defect(error: BaseException) -> Result:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return failure(f"the worker failed to execute the action: {describe(error)} ({where})")
