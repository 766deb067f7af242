"""Where the store's work runs: on threads of its own, or, for a simulation, inline.

`Operation`s are plain functions of a connection. Whoever runs them gives each its own result or error.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import apsw

T = TypeVar("T")
Operation = Callable[[apsw.Connection], T]
# What became of an operation: its result, or the error that its caller shall see.
Ended = tuple[Any, Exception | None]
# Runs operations together and gives each what became of it, in their order.
RunTogether = Callable[[apsw.Connection, Sequence[Operation[Any]]], list[Ended]]


class Lane(Protocol):
    """Runs operations on one connection, one after the other."""

    async def run(self, operation: Operation[T]) -> T: ...

    def close(self) -> None:
        """Finish what was accepted, and close the connection."""
        ...


class InlineLane:
    """Runs each operation at once, in the caller's thread: deterministic, for simulations."""

    def __init__(self, connection: apsw.Connection, run_together: RunTogether) -> None:
        self._connection = connection
        self._run_together = run_together

    async def run(self, operation: Operation[T]) -> T:
        [(result, error)] = self._run_together(self._connection, [operation])
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        self._connection.close()


class ThreadLane:
    """Runs operations on a thread: whatever has gathered while one group was at work forms the next group."""

    def __init__(self, connection: apsw.Connection, run_together: RunTogether, name: str, group: int) -> None:
        self._connection = connection
        self._run_together = run_together
        self._group = group
        self._waiting: queue.SimpleQueue[tuple[Operation[Any], asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._closed = False
        # Held while the thread uses the connection, so that the event loop may peek at it in between.
        self.in_use = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, operation: Operation[T]) -> T:
        if self._closed:
            raise RuntimeError("the store is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.put((operation, future))
        return await future

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._waiting.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group, is_last = self._gather(first)
            with self.in_use:
                ended = self._run_together(self._connection, [operation for operation, _ in group])
            _deliver([future for _, future in group], ended)
            if is_last:
                break
        self._connection.close()

    def _gather(
        self, first: tuple[Operation[Any], asyncio.Future[Any]]
    ) -> tuple[list[tuple[Operation[Any], asyncio.Future[Any]]], bool]:
        group = [first]
        while len(group) < self._group:
            try:
                following = self._waiting.get_nowait()
            except queue.Empty:
                break
            if following is None:
                return group, True
            group.append(following)
        return group, False


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
