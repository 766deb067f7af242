"""Executes attempts where they belong: users' coroutines in the users' loop, everything else in the engine's loop.

One call across the thread boundary starts all groups of a batch, and one brings back all results of an iteration of the
users' loop. What a call of a target raises is the result of its attempts.
"""

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Sequence

from clepsydra.core.action.attempt import Result
from clepsydra.core.clock import Clock
from clepsydra.core.times import MILLISECOND_US
from clepsydra.v1 import action_pb2
from clepsydra.worker.attempts.eager_tasks import EagerTasks
from clepsydra.worker.attempts.users_loop import UsersLoop
from clepsydra.worker.running import Group, RunningAttempt, is_thrown_away
from clepsydra.worker.targets import Executor, Targets
from clepsydra.worker.targets.failures import describe, failure

# The pool knows whether it cancelled the attempt; otherwise its handler has cancelled the task that it ran in.
CANCELLED = failure("its handler cancelled the task that it ran in")
WITHDRAWN = Result(action_pb2.Attempt.INTERRUPTION, "it was not started, because a handler blocked its worker")

# Results of a batch whose executions take longer than this, in all, come back in parts.
_RESULTS_WITHIN_US = 5 * MILLISECOND_US

Executed = tuple[Group, Sequence[Result]]


class Dispatcher:
    def __init__(self, targets: Targets, users: UsersLoop, clock: Clock) -> None:
        self._targets = targets
        self._executors = targets.executors
        self._users = users
        self._here = _Side(self._executors, clock, self._collect_here)
        self._there = _Side(self._executors, clock, self._send_back)
        # Batches of which some groups may not have been started in the users' loop.
        self._starting: deque[EagerTasks] = deque()
        # Set while something is executed in the users' loop.
        self.users_busy = asyncio.Event()
        self._executing_there = 0
        # Receives the groups whose execution has ended, with a result for each attempt; in the engine's loop.
        self.when_executed: Callable[[list[Executed]], None] = lambda executed: None

    def start(self, groups: Sequence[Group]) -> None:
        eager, users, others = list[Group](), list[Group](), list[Group]()
        is_users_coroutine, executors = self._targets.is_users_coroutine, self._executors
        for group in groups:
            attempt = group[0].attempt
            if is_users_coroutine(attempt):
                users.append(group)
            elif executors[attempt.kind].is_eager:
                # An execution that may end at once needs no task of its own, unless it waits.
                eager.append(group)
            else:
                others.append(group)
        if users:
            self._start_there(users)
        if eager:
            EagerTasks(self._here.execute, eager).start()
        for group in others:
            task = asyncio.get_running_loop().create_task(self._here.execute(group))
            for running in group:
                running.task = task

    def cancel(self, running: RunningAttempt) -> None:
        """Cancel the call that executes this attempt. It ends soon, unless its code ignores that or blocks its loop."""
        if self._targets.is_users_coroutine(running.attempt):
            self._users.call(_cancel_task, running)
        else:
            _cancel_task(running)

    def collect(self) -> None:
        """Take over what has ended in the users' loop, even if that does not come to reporting it."""
        self._ended_there(self._there.take())

    def withdraw(self) -> None:
        """Take back what has not been started in the users' loop."""
        unstarted = [group for batch in self._starting for group in batch.take_back()]
        self._starting.clear()
        if unstarted:
            self._ended_there([(group, [WITHDRAWN] * len(group)) for group in unstarted])

    def _start_there(self, groups: list[Group]) -> None:
        while self._starting and self._starting[0].has_started_all:
            self._starting.popleft()
        self._executing_there += sum(map(len, groups))
        self.users_busy.set()
        batch = EagerTasks(self._there.execute, groups)
        self._starting.append(batch)
        self._users.call(batch.start)

    def _send_back(self) -> None:
        self._users.call_back(self.collect)

    def _ended_there(self, executed: list[Executed]) -> None:
        self._executing_there -= sum([len(group) for group, _ in executed])
        if not self._executing_there:
            self.users_busy.clear()
        self.when_executed(executed)

    def _collect_here(self) -> None:
        self.when_executed(self._here.take())


class _Side:
    """Executions in one event loop."""

    def __init__(self, executors: dict[str, Executor], clock: Clock, report: Callable[[], None]) -> None:
        self._executors = executors
        self._clock = clock
        self._report = report
        self._ended: deque[Executed] = deque()
        # When the first result came that is not yet reported.
        self._since_us: int | None = None

    def take(self) -> list[Executed]:
        """What has ended, in the engine's loop. The users' loop may append meanwhile: each end is taken by itself."""
        executed, ended = list[Executed](), self._ended
        while ended:
            executed.append(ended.popleft())
        return executed

    async def execute(self, group: Group) -> None:
        """One call of a target, for one attempt or several."""
        if group[0].cancelled_with is not None or len(group) > 1:
            group = self._without_cancelled(group)
            if not group:
                return
        try:
            results = await self._executors[group[0].attempt.kind].execute(group)
            assert len(results) == len(group), "each attempt has its own result"
        except asyncio.CancelledError:
            results = [CANCELLED] * len(group)
        except BaseException as error:  # SystemExit and the like would end the loop, and leave the attempts hanging
            if is_thrown_away(error, group):
                raise
            results = [_defect(error)] * len(group)
        self._end(group, results)

    def _without_cancelled(self, group: Group) -> Group:
        """The attempts that were not cancelled before they could start."""
        live = [running for running in group if running.cancelled_with is None]
        if len(live) < len(group):
            cancelled = [running for running in group if running.cancelled_with is not None]
            self._end(cancelled, [CANCELLED] * len(cancelled))
        return live

    def _end(self, group: Group, results: Sequence[Result]) -> None:
        # From here on nothing can cancel them, and the task may already execute another attempt.
        for running in group:
            running.task = None
        self._ended.append((group, results))
        now_us = self._clock.monotonic_us()
        if self._since_us is None:
            self._since_us = now_us
            asyncio.get_running_loop().call_soon(self._report_all)
        elif now_us - self._since_us > _RESULTS_WITHIN_US:
            self._since_us = now_us
            self._report()

    def _report_all(self) -> None:
        self._since_us = None
        self._report()


def _cancel_task(running: RunningAttempt) -> None:
    """In the loop that executes it."""
    if running.task is not None:
        running.task.cancel()


def _defect(error: BaseException) -> Result:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
    return failure(f"the worker failed to execute the action: {describe(error)} ({where})", cause=error)
