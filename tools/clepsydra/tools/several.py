"""Several processes that do the same, where one core is not enough: a parent that starts, watches and stops them.

Each child is the same command once more. A socket connects it with its parent: by it the child says when it is ready,
and learns that its parent has gone, however that ended. A child that is killed is started again; one that ends with an
error of its own ends them all, with the same exit code, as it would have ended alone.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from structlog.typing import FilteringBoundLogger

_READY = b"r"
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0


class Parent:
    """What a child knows of its parent."""

    def __init__(self, descriptor: int) -> None:
        self._link = socket.socket(fileno=descriptor)
        self._link.setblocking(False)

    def say_ready(self) -> None:
        # A parent that has gone is noticed by `watch`.
        with contextlib.suppress(OSError):
            self._link.send(_READY)

    def watch(self, stop: asyncio.Event) -> None:
        """Stop when the parent has gone: nobody would be left to stop this process."""
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self._link)
            stop.set()

        loop.add_reader(self._link, gone)


class Children:
    """`command_of` gives the arguments of each child by its number, counted from 1."""

    def __init__(self, count: int, command_of: Callable[[int], Sequence[str]], log: FilteringBoundLogger) -> None:
        self._count = count
        self._command_of = command_of
        self._log = log
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._failed: int | None = None

    async def run(self, stop: asyncio.Event, when_ready: Callable[[], None]) -> int:
        """Run them until they are told to stop. Returns the exit code."""
        ready = asyncio.Event()
        tending = [asyncio.ensure_future(self._tend(1, stop, ready))]
        # What keeps the first from starting would keep the others, and is told once.
        await _first_of(ready.wait(), stop.wait())
        others = [asyncio.Event() for _ in range(self._count - 1)]
        if not stop.is_set():
            tending += [asyncio.ensure_future(self._tend(n, stop, each)) for n, each in enumerate(others, 2)]
            await _first_of(asyncio.gather(*(each.wait() for each in others)), stop.wait())
        if not stop.is_set():
            when_ready()
        await stop.wait()
        for child in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
        await asyncio.gather(*tending)
        return self._failed or 0

    def kill(self) -> None:
        """End them at once."""
        for child in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    async def _tend(self, number: int, stop: asyncio.Event, ready: asyncio.Event) -> None:
        """Keep one child running; `ready` is set when it is so for the first time."""
        pause_s = _FIRST_PAUSE_S
        while True:
            code = await self._run_one(number, stop, ready)
            if stop.is_set():
                return
            if code > 0:
                self._failed = code
                stop.set()
                return
            pause_s = _FIRST_PAUSE_S if ready.is_set() else min(2 * pause_s, _LONGEST_PAUSE_S)
            self._log.warning("a process has ended and is started again", process=number, code=code)
            await _first_of(asyncio.sleep(pause_s), stop.wait())
            ready = asyncio.Event()

    async def _run_one(self, number: int, stop: asyncio.Event, ready: asyncio.Event) -> int:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [sys.executable, sys.argv[0], *self._command_of(number), "--child-of", str(theirs.fileno())]
                # In a session of its own: Ctrl-C in a terminal is for the parent, who tells its children once.
                child = await asyncio.create_subprocess_exec(
                    *command, pass_fds=[theirs.fileno()], start_new_session=True, stdin=asyncio.subprocess.DEVNULL
                )
            self._running[number] = child
            if stop.is_set():
                child.send_signal(signal.SIGTERM)
            ours.setblocking(False)
            listening = asyncio.ensure_future(_listen(ours, ready))
            try:
                return await child.wait()
            finally:
                listening.cancel()
                del self._running[number]


async def _listen(link: socket.socket, ready: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        if await asyncio.get_running_loop().sock_recv(link, 1) == _READY:
            ready.set()


async def _first_of(*waiting: Awaitable[Any]) -> None:
    """Wait for the first, and let go of the others."""
    futures = [asyncio.ensure_future(each) for each in waiting]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
