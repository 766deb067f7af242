"""A supervisor of processes that do the same work, where one core is not enough: it starts, watches and stops them.

Each child runs the same command. A socket connects it with its supervisor: the child reports there that it is ready,
and sees there when the supervisor ends, even by SIGKILL. A child that a signal killed is started again. A child that
exits with an error stops all of them, and the supervisor exits with the same code, as one process alone would.
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

from clepsydra.core.backoff import Backoff
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, SECOND_US, seconds

_READY = b"r"
_RESTART_BACKOFF = Backoff(first_us=500 * MILLISECOND_US, longest_us=30 * SECOND_US)


class SupervisorLink:
    """The child's end of the socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)

    def report_ready(self) -> None:
        # If the supervisor has ended, `stop_without_supervisor` stops this process.
        with contextlib.suppress(OSError):
            self._socket.send(_READY)

    def stop_without_supervisor(self, stop: asyncio.Event) -> None:
        """Set `stop` when the supervisor ends, because nothing else would stop this process."""
        loop = asyncio.get_running_loop()

        def on_end() -> None:
            loop.remove_reader(self._socket)
            stop.set()

        loop.add_reader(self._socket, on_end)


class Supervisor:
    """`command_of` returns the arguments of a child by its number, which counts from 1."""

    def __init__(
        self, count: int, command_of: Callable[[int], Sequence[str]], ids: Ids, log: FilteringBoundLogger
    ) -> None:
        self._count = count
        self._command_of = command_of
        self._ids = ids
        self._log = log
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._exit_code = 0

    async def run(self, stop: asyncio.Event, when_ready: Callable[[], None]) -> int:
        """Run the children until `stop` is set. Returns the exit code."""
        first_ready = asyncio.Event()
        keeping = [asyncio.ensure_future(self._keep_running(1, stop, first_ready))]
        # If the first child cannot start, the others could not either, and one error message is enough.
        await _wait_for_any(first_ready.wait(), stop.wait())
        others_ready = [asyncio.Event() for _ in range(self._count - 1)]
        if not stop.is_set():
            keeping += [
                asyncio.ensure_future(self._keep_running(n, stop, ready)) for n, ready in enumerate(others_ready, 2)
            ]
            await _wait_for_any(asyncio.gather(*(ready.wait() for ready in others_ready)), stop.wait())
        if not stop.is_set():
            when_ready()
        await stop.wait()
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
        await asyncio.gather(*keeping)
        return self._exit_code

    def kill(self) -> None:
        """End all children at once."""
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)

    async def _keep_running(self, number: int, stop: asyncio.Event, ready: asyncio.Event) -> None:
        """Start a child, and start it again when a signal killed it. `ready` is set when it is ready the first time."""
        failures = 0
        while True:
            code = await self._run_child(number, stop, ready)
            if stop.is_set():
                return
            if code > 0:
                self._exit_code = code
                stop.set()
                return
            failures = 1 if ready.is_set() else failures + 1
            self._log.warning("a process has ended and is started again", process=number, code=code)
            pause_us = _RESTART_BACKOFF.pause_us(failures, self._ids.fraction())
            await _wait_for_any(asyncio.sleep(seconds(pause_us)), stop.wait())
            ready = asyncio.Event()

    async def _run_child(self, number: int, stop: asyncio.Event, ready: asyncio.Event) -> int:
        """Run a child once. Returns its exit code, or the negative number of the signal that killed it."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                command = [sys.executable, sys.argv[0], *self._command_of(number), "--child-of", str(theirs.fileno())]
                # A session of its own: Ctrl-C in a terminal reaches only the supervisor, which stops its children.
                child = await asyncio.create_subprocess_exec(
                    *command, pass_fds=[theirs.fileno()], start_new_session=True, stdin=asyncio.subprocess.DEVNULL
                )
            self._children[number] = child
            if stop.is_set():
                child.send_signal(signal.SIGTERM)
            ours.setblocking(False)
            receiving = asyncio.ensure_future(_receive_ready(ours, ready))
            try:
                return await child.wait()
            finally:
                receiving.cancel()
                del self._children[number]


async def _receive_ready(link: socket.socket, ready: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        if await asyncio.get_running_loop().sock_recv(link, 1) == _READY:
            ready.set()


async def _wait_for_any(*awaitables: Awaitable[Any]) -> None:
    """Wait for the first to complete, and cancel the others."""
    futures = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
