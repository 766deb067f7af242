"""An event loop on virtual time: it jumps over idle time, and a seed chooses which ready callback runs next.

Nothing real can leak in: threads, sockets, subprocesses and signals raise. So a run is a pure function of its seed.

Callbacks belong to processes (see `processes.py`): each carries, in its context, the process that it was scheduled by.
What a dead or a stalled process would do next is kept from running.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol, TypeVar

T = TypeVar("T")

# With nothing ready and nothing timed, nobody can ever go on.
_DEADLOCK = "every task waits for something that will never happen"


class Deadlock(Exception):
    pass


class RealWorld(Exception):
    """Something tried to leave the simulation."""


class Gate(Protocol):
    """What decides whether a callback may run now."""

    def admits(self, handle: asyncio.Handle) -> bool:
        """False: the gate keeps the callback, and may hand it back to the loop later."""
        ...


GATE: ContextVar[Gate | None] = ContextVar("GATE", default=None)


class VirtualLoop(asyncio.BaseEventLoop):
    """Ready callbacks run in the order that `chooser` picks; without one, in the order in which they became ready."""

    # What asyncio keeps to itself.
    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self, chooser: random.Random | None = None, start_s: float = 0.0) -> None:
        super().__init__()
        self._chooser = chooser
        self._virtual_s = start_s
        # asyncio's own clock resolution would let timers fire early.
        self._clock_resolution = 0.0
        self.steps = 0

    def time(self) -> float:
        return self._virtual_s

    def freeze(self, for_s: float) -> None:
        """Let time pass in which nothing runs."""
        self._virtual_s += for_s

    def hand_back(self, handles: list[asyncio.Handle]) -> None:
        """Make callbacks ready that a gate had kept."""
        self._ready.extend(handles)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As asyncio does it, without its checks: nearly all the time of a run is spent around here."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _run_once(self) -> None:
        """Replaces asyncio's poll of selectors: move timers that are due to the ready ones, and run one of those."""
        ready, scheduled, chooser = self._ready, self._scheduled, self._chooser
        while not self._stopping:
            if not ready:
                self._jump()
            while scheduled and scheduled[0]._when <= self._virtual_s:
                handle = heapq.heappop(scheduled)
                handle._scheduled = False
                if not handle._cancelled:
                    ready.append(handle)
            if not ready:
                continue
            handle = ready.popleft() if chooser is None or len(ready) == 1 else self._choose(chooser.random())
            if handle._cancelled:
                continue
            gate = handle._context.get(GATE)
            if gate is None or gate.admits(handle):
                self.steps += 1
                handle._run()

    def _choose(self, fraction: float) -> Any:
        """Any process may go on next, but within a process asyncio keeps the order in which callbacks became ready."""
        ready = self._ready
        index = int(fraction * len(ready))
        chosen = ready[index]
        gate = chosen._context.get(GATE)
        if gate is not None:
            for first, handle in enumerate(ready):
                if handle._context.get(GATE) is gate:
                    index, chosen = first, handle
                    break
        del ready[index]
        return chosen

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

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> NoReturn:
        raise RealWorld(f"{func} was to run in a thread")

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """What a run left half-way is closed in the loop's own thread: there is no other."""
        if not self.is_closed():
            self.create_task(agen.aclose())

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> NoReturn:
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
    """A node's clocks on virtual time.

    Its wall clock may be set wrong and stepped; its monotonic clock never goes back, but may run a little fast or slow.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, epoch_us: int = 1_800_000_000_000_000, drift_ppm: int = 0
    ) -> None:
        self._loop = loop
        self.epoch_us = epoch_us
        self._microseconds_per_second = 1_000_000 + drift_ppm

    def now_us(self) -> int:
        return self.epoch_us + self.monotonic_us()

    def latest_us(self) -> int:
        return self.now_us()

    def monotonic_us(self) -> int:
        return round(self._loop.time() * self._microseconds_per_second)

    def step(self, by_us: int) -> None:
        """Set the wall clock, as an operator or a time daemon does."""
        self.epoch_us += by_us
