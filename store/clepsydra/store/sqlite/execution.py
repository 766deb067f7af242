"""Where the store's work runs: on threads of its own, or, for a simulation, inline.

`Operation`s are plain functions of a connection. Whoever runs them gives each its own result or error.
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import apsw

T = TypeVar("T")
Operation = Callable[[apsw.Connection], T]
# What became of an operation: its result, or the error that its caller shall see.
Ended = tuple[Any, Exception | None]
# Runs operations together and gives each what became of it, in their order.
RunTogether = Callable[[apsw.Connection, Sequence[Operation[Any]]], list[Ended]]


class _Waiting(NamedTuple):
    operation: Operation[Any]
    future: asyncio.Future[Any]
    can_wait: bool


class Lane(Protocol):
    """Runs operations on one connection, one after the other."""

    async def run(self, operation: Operation[T], *, can_wait: bool = False) -> T:
        """Run it; one that can wait lets those go first that cannot."""
        ...

    def close(self) -> None:
        """Finish what was accepted, and close the connection."""
        ...


class InlineLane:
    """Runs each operation at once, in the caller's thread: deterministic, for simulations."""

    def __init__(self, connection: apsw.Connection, run_together: RunTogether) -> None:
        self._connection = connection
        self._run_together = run_together

    async def run(self, operation: Operation[T], *, can_wait: bool = False) -> T:
        [(result, error)] = self._run_together(self._connection, [operation])
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        self._connection.close()


class ThreadLane:
    """Runs operations on a thread: whatever has gathered while one group was at work forms the next group.

    Operations that can wait are long, so each is run by itself, and at most every other time while others wait.
    """

    def __init__(self, connection: apsw.Connection, run_together: RunTogether, name: str, group: int) -> None:
        self._connection = connection
        self._run_together = run_together
        self._group = group
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        # The thread's own: what it has taken out of the queue, and whether the last group could not wait.
        self._urgent: deque[_Waiting] = deque()
        self._patient: deque[_Waiting] = deque()
        self._is_last = False
        self._was_urgent = False
        # Held while the thread uses the connection, so that the event loop may peek at it in between.
        self.in_use = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, operation: Operation[T], *, can_wait: bool = False) -> T:
        if self._closed:
            raise RuntimeError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put(_Waiting(operation, future, can_wait))
        return await future

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join()

    def _work(self) -> None:
        while group := self._next_group():
            with self.in_use:
                ended = self._run_together(self._connection, [waiting.operation for waiting in group])
            _deliver([waiting.future for waiting in group], ended)
        self._connection.close()

    def _next_group(self) -> list[_Waiting]:
        """Empty only when the lane was closed and everything is done."""
        self._take_waiting()
        if self._patient and (self._was_urgent or not self._urgent):
            self._was_urgent = False
            return [self._patient.popleft()]
        self._was_urgent = True
        return [self._urgent.popleft() for _ in range(min(self._group, len(self._urgent)))]

    def _take_waiting(self) -> None:
        """Take what waits, and wait for it if there is nothing else to do."""
        while not self._is_last:
            try:
                waiting = self._waiting.get(block=not self._urgent and not self._patient)
            except queue.Empty:
                return
            if waiting is None:
                self._is_last = True
            else:
                (self._patient if waiting.can_wait else self._urgent).append(waiting)


def _deliver(futures: list[asyncio.Future[Any]], ended: list[Ended]) -> None:
    """Hand over the results of a group, waking each event loop once."""
    loops = {future.get_loop() for future in futures}
    for loop in loops:
        mine = [(future, end) for future, end in zip(futures, ended, strict=True) if future.get_loop() is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, mine)


def _settle(ended: list[tuple[asyncio.Future[Any], Ended]]) -> None:
    for future, (result, error) in ended:
        if future.done():  # its caller has gone
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
