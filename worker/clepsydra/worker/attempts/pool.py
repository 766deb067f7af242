"""The bounded pool of attempts: a place, and what else an attempt needs, is taken before it begins, and given back when
it has ended.

Outcomes that wait to be written have as many places of their own, so that the store writes some while others are
executed; beyond that they take the places of attempts. So neither can grow without limit, however slow the store is.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.clock import BoundedClock
from clepsydra.core.lifecycle import end_time_us
from clepsydra.core.plan import Begin
from clepsydra.core.times import END_OF_TIME_US, seconds
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.completer import Completer
from clepsydra.worker.attempts.dispatch import CANCELLED, Dispatcher, Executed
from clepsydra.worker.attempts.suspects import Suspects
from clepsydra.worker.capacity import Listener, Needs
from clepsydra.worker.running import RunningAttempt, SharedCall
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets

NOT_EXTENDED = Result(action_pb2.Attempt.INTERRUPTION, "its lease could not be extended")
STOPPED = Result(action_pb2.Attempt.INTERRUPTION, "its worker was stopped")


class Pool:
    def __init__(
        self,
        settings: WorkerSettings,
        targets: Targets,
        dispatcher: Dispatcher,
        completer: Completer,
        clock: BoundedClock,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._size = settings.attempts
        self._lease_us = settings.lease_us
        self._grace_us = settings.grace_us
        # Half the time for writing an outcome is left to a handler that was cancelled, the rest to the store.
        self._cancelled_within_us = settings.grace_us // 2
        # Attempts that are being begun, or run; and attempts that have ended and whose outcomes are not yet written.
        self._taken = 0
        self._unwritten = 0
        self._targets = targets
        self._executors = targets.executors
        self._places = targets.capacity.places
        self._suspects = Suspects(targets.capacity)
        self._dispatcher = dispatcher
        self._completer = completer
        self._clock = clock
        self._tally = tally
        self._log = log
        # In the order in which they started: the order of a set would differ from process to process.
        self._running: dict[RunningAttempt, None] = {}
        # Attempts whose outcomes count, although their code goes on. Each keeps its place until its code has ended.
        self._stuck: dict[RunningAttempt, None] = {}
        # Extensions of leases before the start.
        self._late: set[asyncio.Task[None]] = set()
        # Extends the leases of attempts; returns those that were extended.
        self.extend: Callable[[list[RunningAttempt]], Awaitable[list[RunningAttempt]]]
        self._is_stopped = False
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_us = 0
        # Called when a lease has ended that should have been extended.
        self.when_lease_is_over: Callable[[], None] = lambda: None
        completer.when_written = self._written
        dispatcher.when_executed = self._executed

    @property
    def room(self) -> int:
        return self._size - self._taken - max(0, self._unwritten - self._size)

    def has_room(self, waiting: Listener) -> bool:
        """If not, the rows that wait are looked at again when there is."""
        if self.room > 0:
            return True
        self._places.listeners.add(waiting)
        return False

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def take(self, begins: Sequence[Begin]) -> dict[int, Needs]:
        """Take what these attempts need. Returns which of the begins must wait, by their index, and for what."""
        attempts = [begin.attempt for begin in begins if begin.attempt is not None]
        granted: dict[Needs, int] = {}
        for needs, count in Counter(map(self._needs_to_begin, attempts)).items():
            granted[needs] = min(count, needs.room())
            needs.take(granted[needs])
            needs.begun += granted[needs]
            self._take_places(granted[needs])
        assert self.room >= 0, "a place is taken before an attempt begins"
        if sum(granted.values()) == len(attempts):
            return {}
        waiting: dict[int, Needs] = {}
        for n, begin in enumerate(begins):
            if begin.attempt is None:
                continue
            needs = self._needs_to_begin(begin.attempt)
            granted[needs] -= 1
            if granted[needs] < 0:
                waiting[n] = needs
        return waiting

    def give_back(self, taken: Sequence[Attempt], begun: Sequence[Attempt]) -> None:
        """Not all of these attempts have begun: give back what the others had taken."""
        still_needed = Counter(map(self._needs_to_begin, begun))
        for needs, count in Counter(map(self._needs_to_begin, taken)).items():
            needs.give_back(count, still_needed[needs])
        self._take_places(len(begun) - len(taken))
        self._changed.set()

    async def wait_for_room(self, within_s: float | None = None) -> None:
        """Return when there is room, or when the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self.room <= 0:
                    self._changed.clear()
                    await self._changed.wait()

    def start(self, attempts: Sequence[Attempt]) -> None:
        """Execute attempts whose begin was written. What they need was taken before."""
        now_us, are_covered = self._clock.now_us(), True
        started: list[RunningAttempt] = []
        for attempt in attempts:
            running = RunningAttempt(attempt)
            self._running[running] = None
            started.append(running)
            attempt.start(now_us)
            are_covered = self._is_covered(attempt, now_us, self._grace_us // 2) and are_covered
        self._tally.begun += len(attempts)
        if not are_covered:
            task = asyncio.get_running_loop().create_task(self._start_late(started))
            # The event loop holds only a weak reference to a task that waits.
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        elif started:
            self._execute(started, now_us)

    async def _start_late(self, late: list[RunningAttempt]) -> None:
        """Too little is left of their leases, because their begin took long: extend those, and then execute them."""
        for running in late:
            running.awaits_lease = True
        extended = set(await self.extend(late))
        now_us, started, left = self._clock.now_us(), list[RunningAttempt](), list[RunningAttempt]()
        for running in late:
            running.awaits_lease = False
            if running.has_ended:
                # It was cancelled meanwhile, and given up before it could start.
                self._code_has_ended(running)
                continue
            running.attempt.start(now_us)
            is_kept = running in extended and not self._is_stopped
            is_covered = is_kept and self._is_covered(running.attempt, now_us, self._grace_us // 4)
            (started if is_covered else left).append(running)
        if len(started) < len(late):
            self._give_back_needs([running.attempt for running in late], [running.attempt for running in started])
            self._end((running, STOPPED if self._is_stopped else NOT_EXTENDED) for running in left)
        if started:
            self._execute(started, now_us)

    def _is_covered(self, attempt: Attempt, now_us: int, reserve_us: int) -> bool:
        """Whether the lease covers an attempt that starts now, and leaves this much for writing the outcome."""
        ends_us = now_us + min(attempt.timeout_us, self._lease_us)
        if ends_us > attempt.row.at_us - reserve_us:
            return False
        if ends_us > attempt.lease_ends_us:
            # It begins late: its lease moves along, and a part of the grace is used up.
            attempt.lease_ends_us = ends_us
        return True

    def _execute(self, started: Sequence[RunningAttempt], now_us: int) -> None:
        # A lease ends no later than its attempt must.
        self._watch(min([running.attempt.lease_ends_us for running in started]), now_us)
        groups = self._targets.groups(started)
        if len(groups) < len(started):
            for group in groups:
                if len(group) > 1:
                    together, call = dict.fromkeys(group), SharedCall(len(group))
                    for running in group:
                        running.group, running.call = together, call
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
        self._is_stopped = True
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
            elif running.awaits_lease:
                continue
            elif now_us >= attempt.deadline_us:
                text = f"it did not end within its timeout of {seconds(attempt.timeout_us):.3g} s"
                self.cancel(running, Result(action_pb2.Attempt.TIMEOUT, text))
            elif now_us >= attempt.lease_ends_us:
                next_us = min(next_us, self._lease_is_over(running, now_us))
            else:
                next_us = min(next_us, attempt.deadline_us, attempt.lease_ends_us)
        if next_us < END_OF_TIME_US:
            self._watch(next_us, now_us)

    def _lease_is_over(self, running: RunningAttempt, now_us: int) -> int:
        """Ask for an extension, and cancel it if none comes within half the grace. Returns when that is over.

        After a pause of the process a lease may be long over. The attempt still owns its row unless it was taken over.
        """
        if not running.lease_over_us:
            running.lease_over_us = now_us
            self.when_lease_is_over()
        cancelled_us = running.lease_over_us + self._cancelled_within_us
        if now_us >= cancelled_us:
            self.cancel(running, NOT_EXTENDED)
            return running.gives_up_us
        return cancelled_us

    def _give_up(self, running: RunningAttempt, result: Result) -> None:
        """A cancelled attempt goes on, or its loop is blocked: its outcome is written, but its place stays taken."""
        if running.has_ended:
            return
        self._stuck[running] = None
        self._take_places(1)
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
        single_calls: list[Attempt] = []
        for group, results in executed:
            for running, result in zip(group, results, strict=True):
                if running.call is None:
                    single_calls.append(running.attempt)
                elif running.call.ends_with_one_less():
                    self._needs(running.attempt).give_back(running.call.attempts)
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
        self._give_back_needs(single_calls)
        self._complete(ended, end_time_us(self._clock.latest_us()))

    def _code_has_ended(self, running: RunningAttempt) -> None:
        """The attempt ended earlier: its place is free if its code kept it."""
        if running in self._stuck:
            del self._stuck[running]
            self._take_places(-1)
            self._changed.set()

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
        self._complete(ended, end_time_us(self._clock.latest_us()))

    def _end_after_extension(self, running: RunningAttempt, result: Result, _extension: "asyncio.Future[None]") -> None:
        self._end([(running, result)])

    def _complete(self, ended: Sequence[tuple[Attempt, Result]], ended_us: int) -> None:
        if not ended:
            return
        self._unwritten += len(ended)
        self._take_places(-len(ended))
        self._completer.complete(ended, ended_us)
        self._changed.set()

    def _written(self, attempts: Sequence[Attempt]) -> None:
        self._unwritten -= len(attempts)
        self._suspects.written(attempts)
        self._take_places(0)
        self._changed.set()

    def _needs(self, attempt: Attempt) -> Needs:
        return self._executors[attempt.kind].needs(attempt.target)

    def _needs_to_begin(self, attempt: Attempt) -> Needs:
        needs = self._executors[attempt.kind].needs(attempt.target)
        return self._suspects.needs(needs) if attempt.is_alone else needs

    def _give_back_needs(self, attempts: Sequence[Attempt], except_for: Sequence[Attempt] = ()) -> None:
        still_needed = Counter(map(self._needs, except_for))
        for needs, count in Counter(map(self._needs, attempts)).items():
            needs.give_back(count, still_needed[needs])

    def _take_places(self, count: int) -> None:
        """Keep the places up to date, of which handlers have their parts."""
        self._taken += count
        self._places.give_back(self._places.taken - (self._size - self.room))
