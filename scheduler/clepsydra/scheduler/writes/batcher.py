"""Few store calls for many callers: items that arrive while a batch is under way go out together in the next.

A batch waits until as many callers have come as the batch before it had, and a small batch also waits for the one under
way; both for 8 ms at most. Callers that were just answered are likely to come back at once, and the more share a batch,
the less each costs. A caller that was alone the last time does not wait.

Memory is bounded: items that wait or are under way are counted, by number and by size, and what does not fit is
refused. Items that nobody waits for any more are dropped before they are sent. A caller costs one future, however many
items it brings.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from clepsydra.core.clock import Clock
from clepsydra.scheduler.errors import DeadlinePassed, Overloaded

Item = TypeVar("Item")
Result = TypeVar("Result")

# A batch with this many callers, or this many items, gains little by waiting for more.
_CALLERS_ENOUGH = 32
_ITEMS_ENOUGH = 100
# Long enough for some tens of callers to come back. With less, many callers split into batches that are too small.
_WAIT_MAX_S = 0.008


class Bounds(NamedTuple):
    batch: int
    batch_bytes: int
    in_flight: int
    pending_items: int
    pending_bytes: int


class _Submission(NamedTuple, Generic[Item, Result]):
    """Items of one caller that go out together."""

    items: Sequence[Item]
    size: int
    deadline_us: int | None
    results: asyncio.Future[Sequence[Result | Exception]]


class Batcher(Generic[Item, Result]):
    """Collects items for `send`, which returns one result for each item of a batch."""

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        size_of: Callable[[Item], int],
        bounds: Bounds,
        clock: Clock,
    ) -> None:
        self._call = send
        self._size_of = size_of
        self._bounds = bounds
        self._clock = clock
        self._queue: deque[_Submission[Item, Result]] = deque()
        # Items that wait, and items and bytes that wait or are under way.
        self._queued_items = 0
        self._items = 0
        self._bytes = 0
        self._expected_callers = 0
        self._dispatcher: asyncio.Task[None] | None = None
        self._sending: set[asyncio.Task[None]] = set()
        # Set by everything that may complete a batch: a submission, or the end of a batch under way.
        self._changed = asyncio.Event()

    async def submit(self, items: Sequence[Item], deadline_us: int | None = None) -> list[Result | Exception]:
        """The result of each item, or the error that it met. A caller that stops waiting takes its items back."""
        submissions: list[_Submission[Item, Result]] = []
        loop = asyncio.get_running_loop()
        for part, size in self._parts(items):
            submission = _Submission(part, size, deadline_us, loop.create_future())
            submissions.append(submission)
            self._queue.append(submission)
            self._queued_items += len(part)
            self._items += len(part)
            self._bytes += size
        self._changed.set()
        if self._dispatcher is None and submissions:
            # It starts in the loop's next iteration, so every caller that is ready in this one can join.
            self._dispatcher = loop.create_task(self._dispatch())
        try:
            results = [result for submission in submissions for result in await submission.results]
        except asyncio.CancelledError:
            for submission in submissions:
                submission.results.cancel()
            raise
        refusal = Overloaded("the scheduler has too much to write already: try again a little later")
        return results + [refusal] * (len(items) - len(results))

    async def idle(self) -> None:
        """Return when nothing waits and nothing is under way."""
        while self._dispatcher is not None or self._sending:
            await asyncio.wait([*self._sending, *([self._dispatcher] if self._dispatcher else [])])

    def _parts(self, items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], int]]:
        """The items in order, as far as there is room, in parts that fit into a batch."""
        bounds = self._bounds
        start = 0
        while start < len(items):
            places = min(bounds.batch, bounds.pending_items - self._items)
            room = min(bounds.batch_bytes, bounds.pending_bytes - self._bytes)
            part = items[start : start + places]
            size = sum(map(self._size_of, part))
            while size > room and part:
                # An item that is larger than a batch goes alone, if there is room for it at all.
                if len(part) == 1 and size <= bounds.pending_bytes - self._bytes:
                    break
                part = part[: len(part) // 2]
                size = sum(map(self._size_of, part))
            if not part:
                return
            yield part, size
            start += len(part)

    async def _dispatch(self) -> None:
        """Send batches while anything waits: at most `in_flight` at once."""
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                while len(self._sending) >= self._bounds.in_flight:
                    await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
                await self._wait_until_complete()
                batch = self._take_batch()
                if batch:
                    sending = loop.create_task(self._send(batch))
                    self._sending.add(sending)
                    sending.add_done_callback(self._sending.discard)
        finally:
            self._dispatcher = None

    async def _wait_until_complete(self) -> None:
        """Wait until the batch is complete, or has waited for long enough."""
        enough = min(_ITEMS_ENOUGH, self._bounds.batch)
        try:
            async with asyncio.timeout(_WAIT_MAX_S):
                while self._queued_items < enough and (self._sending or len(self._queue) < self._expected_callers):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        self._expected_callers = min(len(self._queue), _CALLERS_ENOUGH)

    def _take_batch(self) -> list[_Submission[Item, Result]]:
        batch: list[_Submission[Item, Result]] = []
        room, places = self._bounds.batch_bytes, self._bounds.batch
        now_us = self._clock.monotonic_us()
        while self._queue and room > 0 and (len(self._queue[0].items) <= places or not batch):
            submission = self._queue.popleft()
            items, size, deadline_us, results = submission
            self._queued_items -= len(items)
            if not results.done() and deadline_us is not None and deadline_us <= now_us:
                passed = DeadlinePassed("the call's deadline passed before it was sent to the store")
                results.set_result([passed] * len(items))
            if results.done():
                self._items -= len(items)
                self._bytes -= size
                continue
            batch.append(submission)
            room -= size
            places -= len(items)
        return batch

    async def _send(self, batch: list[_Submission[Item, Result]]) -> None:
        items = batch[0].items if len(batch) == 1 else [item for submission in batch for item in submission.items]
        results: Sequence[Result | Exception]
        try:
            results = await self._call(items)
            assert len(results) == len(items), "each item has its own result"
        except Exception as error:  # noqa: BLE001  # the caller judges it
            results = [error] * len(items)
        start = 0
        for submission in batch:
            end = start + len(submission.items)
            if not submission.results.done():
                submission.results.set_result(results[start:end])
            start = end
            self._items -= len(submission.items)
            self._bytes -= submission.size
        self._changed.set()
