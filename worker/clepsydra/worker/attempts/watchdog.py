"""The watchdog: it asks the users' loop for an answer, and names the handler that keeps it from answering.

It runs in the engine's loop, and only while something is executed in the users' loop. A blocked loop is reported once,
with the handler, the action and the line. What had not been started there is withdrawn, and no more coroutines begin
until the loop answers again.
"""

import asyncio
import contextlib
import sysconfig
from collections.abc import Iterator
from types import FrameType
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock
from clepsydra.core.times import MILLISECOND_US, seconds
from clepsydra.worker.attempts.dispatch import Dispatcher
from clepsydra.worker.attempts.pool import Pool
from clepsydra.worker.attempts.users_loop import UsersLoop
from clepsydra.worker.capacity import UNLIMITED, Capacity
from clepsydra.worker.tally import Tally

# A loop that blocks is named within the sum of these, and what else has ended in it is collected meanwhile.
_ASK_EVERY_S = 0.5
_BLOCKED_AFTER_US = 900 * MILLISECOND_US
_COLLECT_EVERY_S = 0.25

_STACK_LENGTH = 8
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_OURS = "/clepsydra/worker/"


class Watchdog:
    def __init__(
        self,
        users: UsersLoop,
        dispatcher: Dispatcher,
        pool: Pool,
        capacity: Capacity,
        clock: Clock,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._users = users
        self._dispatcher = dispatcher
        self._pool = pool
        self._capacity = capacity
        self._clock = clock
        self._tally = tally
        self._log = log
        self._is_blocked = False

    async def run(self) -> None:
        while True:
            await self._dispatcher.users_busy.wait()
            if self._users.is_apart:
                await self._ask()
            await asyncio.sleep(_ASK_EVERY_S)

    async def _ask(self) -> None:
        answered, asked_us = asyncio.Event(), self._clock.monotonic_us()
        self._users.call(self._users.call_back, answered.set)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_COLLECT_EVERY_S):
                    await answered.wait()
            waited_us = self._clock.monotonic_us() - asked_us
            if answered.is_set():
                break
            self._dispatcher.collect()
            if not self._is_blocked and waited_us >= _BLOCKED_AFTER_US:
                self._look(waited_us)
        if self._is_blocked:
            self._is_blocked = False
            self._capacity.coroutines.set_limit(UNLIMITED)
            self._log.info("the event loop of coroutine handlers answers again", blocked_s=seconds(waited_us))

    def _look(self, waited_us: int) -> None:
        """Name what blocks the loop, unless the loop merely gets no time from the machine."""
        task, frame = self._users.current()
        stack = list(_frames_of_users(frame))
        if not stack:
            return
        self._is_blocked = True
        self._capacity.coroutines.set_limit(0)
        self._tally.blocked_loops += 1
        self._log.warning(
            "a handler blocks the event loop of all coroutine handlers: let it await, or make it a plain function",
            **self._names(task),
            line=_place(next((frame for frame in stack if _is_users_own(frame)), stack[0])),
            stack=[_place(frame) for frame in stack[:_STACK_LENGTH]],
            blocked_s=seconds(waited_us),
        )
        self._dispatcher.withdraw()

    def _names(self, task: "asyncio.Task[Any] | None") -> dict[str, str]:
        for running in self._pool.executing():
            if task is not None and running.task is task:
                attempt = running.attempt
                return {"handler": attempt.target.name, "action_id": attempt.action.action_id, "attempt_id": attempt.id}
        # A task that a handler has started, or a callback: nothing tells whose it is.
        return {"handler": "unknown", "task": "none" if task is None else repr(task.get_coro())}


def _frames_of_users(frame: FrameType | None) -> Iterator[FrameType]:
    """From the innermost frame outwards, as far as they are not ours."""
    while frame is not None and _OURS not in frame.f_code.co_filename:
        if frame.f_code.co_filename.startswith(f"{_STANDARD_LIBRARY}/asyncio/"):
            return
        yield frame
        frame = frame.f_back


def _is_users_own(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return not name.startswith(_STANDARD_LIBRARY) and "/site-packages/" not in name


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
