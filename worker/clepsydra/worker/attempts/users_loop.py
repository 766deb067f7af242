"""The event loop that runs users' coroutines: a loop and thread of its own, or the engine's own loop.

A coroutine that blocks its event loop stops everything else on that loop. So a worker process runs users' coroutines
apart from its own work: heartbeats, lease extensions, begins and outcomes go on while a handler blocks. Tests and the
simulation have one loop on virtual time, which runs both.
"""

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from types import FrameType
from typing import Any, Protocol

from structlog.typing import FilteringBoundLogger

# After this long the thread is left behind: it is a daemon, and a handler that blocks does not keep a process alive.
_CLOSED_WITHIN_S = 5.0


class UsersLoop(Protocol):
    # Whether users' coroutines have a loop and thread of their own.
    is_apart: bool

    def start(self) -> None:
        """To be called in the engine's loop."""
        ...

    async def close(self) -> None: ...

    def call(self, function: Callable[..., object], *args: Any) -> None:
        """From the engine's loop: call a function in the users' loop, after those of earlier calls."""
        ...

    def call_back(self, function: Callable[..., object], *args: Any) -> None:
        """From the users' loop: call a function in the engine's loop."""
        ...

    def current(self) -> "tuple[asyncio.Task[Any] | None, FrameType | None]":
        """What the users' loop is doing at this moment: its task, and the innermost frame of its thread."""
        ...


class SameLoop:
    """Users' coroutines run in the engine's loop."""

    is_apart = False

    def start(self) -> None: ...

    async def close(self) -> None: ...

    def call(self, function: Callable[..., object], *args: Any) -> None:
        function(*args)

    call_back = call

    def current(self) -> "tuple[asyncio.Task[Any] | None, FrameType | None]":
        return None, None


class ThreadLoop:
    """Users' coroutines run in a loop of their own, in a thread of its own."""

    is_apart = True

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop], log: FilteringBoundLogger) -> None:
        self._new_loop = new_loop
        self._log = log
        self._thread = threading.Thread(target=self._serve, name="clepsydra-users-loop", daemon=True)
        # The loop, once it runs; and the event that ends it.
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._ended: Future[None] = Future()

    def start(self) -> None:
        self._engine = asyncio.get_running_loop()
        self._thread.start()
        # A few milliseconds, once.
        self._loop, self._stop = self._started.result()

    async def close(self) -> None:
        """End the loop. A thread that a handler blocks is left behind."""
        self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(wait, [self._ended], _CLOSED_WITHIN_S)

    def call(self, function: Callable[..., object], *args: Any) -> None:
        self._loop.call_soon_threadsafe(function, *args)

    def call_back(self, function: Callable[..., object], *args: Any) -> None:
        try:
            self._engine.call_soon_threadsafe(function, *args)
        except RuntimeError:
            # The engine's loop is closed: nobody waits for this any more.
            return

    def current(self) -> "tuple[asyncio.Task[Any] | None, FrameType | None]":
        frames = sys._current_frames()
        return asyncio.current_task(self._loop), frames.get(self._thread.ident or 0)

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                loop = runner.get_loop()
                running = loop.create_task(self._run_until_stopped())
                while not running.done():
                    self._run(loop, running)
        finally:
            self._ended.set_result(None)

    async def _run_until_stopped(self) -> None:
        stop = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()

    def _run(self, loop: asyncio.AbstractEventLoop, running: "asyncio.Task[None]") -> None:
        try:
            loop.run_until_complete(running)
        except BaseException as error:
            # A SystemExit in a task that a handler started, or in a callback, ends `run_until_complete`, not the loop.
            self._log.warning("a task or callback of a handler raised what would end the worker", exc_info=error)
