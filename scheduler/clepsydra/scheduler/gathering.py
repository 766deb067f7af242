"""Many callers, few store calls: what comes in while a batch is under way goes out together in the next.

Memory is bounded: what waits or is under way is counted, by number and by size, and what does not fit is refused. What
nobody waits for any more is dropped before it is sent. An item costs one future; a task sends batches while any wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from clepsydra.core.clock import Clock
from clepsydra.scheduler.errors import DeadlinePassed, Overloaded

Item = TypeVar("Item")
Result = TypeVar("Result")


class Bounds(NamedTuple):
    batch: int
    batch_bytes: int
    in_flight: int
    pending_items: int
    pending_bytes: int


# What waits: the item, its size, its caller's deadline, and the future of its result.
_Waiting = tuple[Item, int, int | None, asyncio.Future[Result | Exception]]


class Gathering(Generic[Item, Result]):
    """Gathers items for `send`, which answers each of a batch.

    Where items have names, a batch has each name at most once: a second item of that name waits for the next batch.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        name_of: Callable[[Item], object] | None,
        size_of: Callable[[Item], int],
        bounds: Bounds,
        clock: Clock,
    ) -> None:
        self._call = send
        self._name_of = name_of
        self._size_of = size_of
        self._bounds = bounds
        self._clock = clock
        # At most one item of each name; the others of that name stand behind it, so that they hold up nobody else.
        self._waiting: deque[_Waiting[Item, Result]] = deque()
        self._behind: dict[object, deque[_Waiting[Item, Result]] | None] = {}
        self._items = 0
        self._bytes = 0
        self._senders: set[asyncio.Task[None]] = set()
        self._sending = 0
        self._woken = False

    def add(self, item: Item, deadline_us: int | None = None) -> asyncio.Future[Result | Exception]:
        """Its result, or why there is none: an error is a result here, because nobody may be left to catch it."""
        future: asyncio.Future[Result | Exception] = asyncio.get_running_loop().create_future()
        size = self._size_of(item)
        if self._items >= self._bounds.pending_items or self._bytes + size > self._bounds.pending_bytes:
            future.set_result(Overloaded("the scheduler has too much to write already: try again a little later"))
            return future
        self._items += 1
        self._bytes += size
        self._line_up((item, size, deadline_us, future))
        self._wake_sender()
        return future

    async def idle(self) -> None:
        """Return when nothing waits and nothing is under way."""
        while self._senders:
            await asyncio.wait(self._senders)

    def _wake_sender(self) -> None:
        if self._woken or self._sending == self._bounds.in_flight:
            return
        # It begins in the loop's next turn: whoever else is ready to run in this one can still come along.
        self._woken = True
        self._sending += 1
        sender = asyncio.get_running_loop().create_task(self._send_waiting())
        self._senders.add(sender)
        sender.add_done_callback(self._senders.discard)

    async def _send_waiting(self) -> None:
        self._woken = False
        try:
            while self._waiting:
                batch = self._next_batch()
                if self._waiting:
                    self._wake_sender()
                if batch:
                    await self._send(batch)
        finally:
            self._sending -= 1

    def _line_up(self, waiting: _Waiting[Item, Result]) -> None:
        if self._name_of is not None:
            name = self._name_of(waiting[0])
            if name in self._behind:
                behind = self._behind[name]
                if behind is None:
                    behind = self._behind[name] = deque()
                behind.append(waiting)
                return
            self._behind[name] = None
        self._waiting.append(waiting)

    def _next_batch(self) -> list[_Waiting[Item, Result]]:
        batch: list[_Waiting[Item, Result]] = []
        following: list[_Waiting[Item, Result]] = []
        room = self._bounds.batch_bytes
        while self._waiting and room > 0 and len(batch) < self._bounds.batch:
            waiting = self._waiting.popleft()
            item, size, deadline_us, future = waiting
            if self._name_of is not None:
                self._let_next_follow(self._name_of(item), following)
            if future.done() or (deadline_us is not None and self._has_passed(deadline_us, future)):
                self._let_go([waiting])
            else:
                batch.append(waiting)
                room -= size
        self._waiting.extend(following)
        return batch

    def _let_next_follow(self, name: object, following: list[_Waiting[Item, Result]]) -> None:
        behind = self._behind[name]
        if behind:
            following.append(behind.popleft())
        else:
            del self._behind[name]

    def _has_passed(self, deadline_us: int, future: asyncio.Future[Result | Exception]) -> bool:
        if deadline_us > self._clock.monotonic_us():
            return False
        future.set_result(DeadlinePassed("the call's deadline passed before it was sent to the store"))
        return True

    async def _send(self, batch: list[_Waiting[Item, Result]]) -> None:
        results: Sequence[Result | Exception]
        try:
            results = await self._call([item for item, _, _, _ in batch])
            assert len(results) == len(batch), "each item has its own result"
        except Exception as error:  # noqa: BLE001  # whoever waits for the result judges it
            results = [error] * len(batch)
        self._let_go(batch)
        for (_, _, _, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    def _let_go(self, batch: list[_Waiting[Item, Result]]) -> None:
        self._items -= len(batch)
        self._bytes -= sum([size for _, size, _, _ in batch])


async def all_of(futures: Sequence[asyncio.Future[Result]]) -> list[Result]:
    """Wait for all, without a task for each; a caller who stops waiting takes them all back."""
    try:
        return [await future for future in futures]
    except asyncio.CancelledError:
        for future in futures:
            future.cancel()
        raise
