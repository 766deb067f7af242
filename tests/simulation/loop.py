"""An event loop on virtual time: it jumps over idle time, and a seed chooses which ready callback runs next.

Nothing real can leak in: threads, sockets, subprocesses and signals raise. So a run is a pure function of its seed.
"""

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

# With nothing ready and nothing timed, nobody can ever go on.
_DEADLOCK = "every task waits for something that will never happen"


class Deadlock(Exception):
    pass


class RealWorld(Exception):
    """Something tried to leave the simulation."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Ready callbacks run in the order that `chooser` picks; without one, in the order in which they became ready."""

    def __init__(self, chooser: random.Random | None = None, start_s: float = 0.0) -> None:
        super().__init__()
        self._chooser = chooser
        self._virtual_s = start_s
        # asyncio's own clock resolution would let timers fire early.
        self._clock_resolution = 0.0
        self.steps = 0

    def time(self) -> float:
        return self._virtual_s

    def _run_once(self) -> None:
        """Replaces asyncio's poll of selectors: move timers that are due to the ready ones, and run one of those."""
        if not self._ready:
            self._jump()
        while self._scheduled and self._scheduled[0]._when <= self._virtual_s:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                self._ready.append(handle)
        if self._ready:
            handle = self._next_ready()
            if not handle._cancelled:
                self.steps += 1
                handle._run()

    def _next_ready(self) -> Any:
        if self._chooser is None or len(self._ready) == 1:
            return self._ready.popleft()
        index = self._chooser.randrange(len(self._ready))
        self._ready.rotate(-index)
        handle = self._ready.popleft()
        self._ready.rotate(index)
        return handle

    def _jump(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
        if self._scheduled:
            self._virtual_s = max(self._virtual_s, self._scheduled[0]._when)
        elif not self._stopping:
            raise Deadlock(_DEADLOCK)

    def _process_events(self, event_list: Any) -> NoReturn:
        raise RealWorld("a selector was polled")

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector, so nobody has to be woken."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> NoReturn:
        raise RealWorld(f"{func} was to run in a thread")

    def call_soon_threadsafe(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> NoReturn:
        raise RealWorld(f"{callback} was called from a thread")


def run(main: Coroutine[Any, Any, T], chooser: random.Random | None = None) -> T:
    """Run a coroutine on virtual time, as `asyncio.run` would on real time."""
    loop = VirtualLoop(chooser)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main)
    finally:
        _cancel_all(loop)
        asyncio.set_event_loop(None)
        loop.close()


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    try:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    except Deadlock:
        # Tasks of nodes that were killed wait for ever; they are dropped as they are.
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]


class VirtualClock:
    """A node's clocks on virtual time. Its wall clock may be set wrong or stepped; its monotonic clock never is."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch_us: int = 1_800_000_000_000_000) -> None:
        self._loop = loop
        self.epoch_us = epoch_us

    def now_us(self) -> int:
        return self.epoch_us + self.monotonic_us()

    def monotonic_us(self) -> int:
        return round(self._loop.time() * 1_000_000)
