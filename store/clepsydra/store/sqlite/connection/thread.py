"""Where the store's work runs: on a thread for each connection, or, in a simulation, inline.

An `Operation` is a function of a connection. Each operation has a result or an error of its own, whether it shares a
transaction with others or not.
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
# The result of an operation, or the error that its caller receives.
Settled = tuple[Any, Exception | None]
# Runs a group of operations on a connection, and returns what each came to, in their order.
RunGroup = Callable[[apsw.Connection, Sequence[Operation[Any]]], list[Settled]]


class OperationRunner(Protocol):
    """Runs operations on one connection, one after the other."""

    async def run(self, operation: Operation[T], *, can_wait: bool = False) -> T:
        """Run an operation. Operations that cannot wait go before those that can."""
        ...

    def close(self) -> None:
        """Finish what was accepted, and close the connection."""
        ...


class InlineRunner:
    """Runs each operation at once, in the caller's thread: deterministic, for simulations."""

    def __init__(self, connection: apsw.Connection, run_group: RunGroup) -> None:
        self._connection = connection
        self._run_group = run_group

    async def run(self, operation: Operation[T], *, can_wait: bool = False) -> T:
        [(result, error)] = self._run_group(self._connection, [operation])
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        self._connection.close()


class _Waiting(NamedTuple):
    operation: Operation[Any]
    future: asyncio.Future[Any]
    can_wait: bool


class ConnectionThread:
    """Runs operations on a thread. The operations that come in while one group runs form the next group.

    Operations that can wait take long, so each is a group of its own, and at most every second group is one of them
    while others wait.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        run_group: RunGroup,
        name: str,
        group_size: int,
        close: Callable[[apsw.Connection], None] = apsw.Connection.close,
    ) -> None:
        self._connection = connection
        self._run_group = run_group
        self._close_connection = close
        self._group_size = group_size
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        # Only the thread uses these: what it has taken out of the queue, and whether the last group was urgent.
        self._urgent: deque[_Waiting] = deque()
        self._deferred: deque[_Waiting] = deque()
        self._is_last = False
        self._was_urgent = False
        # Held while the thread uses the connection; in between, the event loop may use it.
        self.in_use = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while group := self._next_group():
            with self.in_use:
                settled = self._run_group(self._connection, [waiting.operation for waiting in group])
            _deliver([waiting.future for waiting in group], settled)
        self._close_connection(self._connection)

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

    def _next_group(self) -> list[_Waiting]:
        """Empty only when the thread was closed and everything is done."""
        while not self._is_last:
            try:
                waiting = self._waiting.get(block=not self._urgent and not self._deferred)
            except queue.Empty:
                break
            if waiting is None:
                self._is_last = True
            else:
                (self._deferred if waiting.can_wait else self._urgent).append(waiting)
        if self._deferred and (self._was_urgent or not self._urgent):
            self._was_urgent = False
            return [self._deferred.popleft()]
        self._was_urgent = True
        return [self._urgent.popleft() for _ in range(min(self._group_size, len(self._urgent)))]


def _deliver(futures: list[asyncio.Future[Any]], settled: list[Settled]) -> None:
    """Hand over the results of a group, waking each event loop once."""
    loops = {future.get_loop() for future in futures}
    for loop in loops:
        mine = [(future, each) for future, each in zip(futures, settled, strict=True) if future.get_loop() is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, mine)


def _settle(settled: list[tuple[asyncio.Future[Any], Settled]]) -> None:
    for future, (result, error) in settled:
        if future.done():  # its caller was cancelled
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
