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
from typing import Any, Generic, NamedTuple, TypeVar

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
    """Items of one caller that go out together. Where items have keys, no two items have the same."""

    items: Sequence[Item]
    keys: Sequence[object]
    size: int
    deadline_us: int | None
    results: asyncio.Future[Sequence[Result | Exception]]


class Batcher(Generic[Item, Result]):
    """Collects items for `send`, which returns one result for each item of a batch.

    Where items have keys, a batch has each key at most once: a second item with that key waits for the next batch.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        key_of: Callable[[Item], object] | None,
        size_of: Callable[[Item], int],
        bounds: Bounds,
        clock: Clock,
    ) -> None:
        self._call = send
        self._key_of = key_of
        self._size_of = size_of
        self._bounds = bounds
        self._clock = clock
        # No two submissions in this queue share a key. Those that would are queued behind the key, so that they hold
        # up nobody else.
        self._queue: deque[_Submission[Item, Result]] = deque()
        self._queued_items = 0
        self._behind: dict[object, deque[_Submission[Item, Result]] | None] = {}
        # Waiting or under way.
        self._items = 0
        self._bytes = 0
        self._senders: set[asyncio.Task[None]] = set()
        self._sending = 0
        # Whether a sender is about to make up a batch, how many callers it expects, and what it waits on.
        self._sender_waits = False
        self._expected_callers = 0
        self._complete: asyncio.Future[None] | None = None

    async def submit(self, items: Sequence[Item], deadline_us: int | None = None) -> list[Result | Exception]:
        """The result of each item, or the error that it met. A caller that stops waiting takes its items back."""
        accepted = [self._accept(*part, deadline_us) for part in self._parts(items)]
        try:
            return [result for results in accepted for result in await results]
        except asyncio.CancelledError:
            for results in accepted:
                results.cancel()
            raise

    async def idle(self) -> None:
        """Return when nothing waits and nothing is under way."""
        while self._senders:
            await asyncio.wait(self._senders)

    def _parts(self, items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], Sequence[object], int]]:
        """The items in order, in parts that fit into a batch and, if possible, into the room that is left."""
        start = 0
        while start < len(items):
            places, room = self._room()
            part = items[start : start + max(1, places)]
            keys = [] if self._key_of is None else [*map(self._key_of, part)]
            size = sum(map(self._size_of, part))
            if size <= room and len(set(keys)) == len(keys):
                yield part, keys, size
            else:
                yield from self._smaller_parts(part)
            start += len(part)

    def _smaller_parts(self, items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], Sequence[object], int]]:
        """Items that are too large to go together, or that share a key."""
        part: list[Item] = []
        keys: dict[object, None] = {}
        size = 0
        places, room = self._room()
        for item in items:
            key = None if self._key_of is None else self._key_of(item)
            item_size = self._size_of(item)
            if part and (len(part) >= places or size + item_size > room or key in keys):
                yield part, list(keys), size
                part, keys, size = [], {}, 0
                places, room = self._room()
            part.append(item)
            size += item_size
            if key is not None:
                keys[key] = None
        if part:
            yield part, list(keys), size

    def _room(self) -> tuple[int, int]:
        bounds = self._bounds
        return (
            min(bounds.batch, bounds.pending_items - self._items),
            min(bounds.batch_bytes, bounds.pending_bytes - self._bytes),
        )

    def _accept(
        self, items: Sequence[Item], keys: Sequence[object], size: int, deadline_us: int | None
    ) -> asyncio.Future[Sequence[Result | Exception]]:
        results: asyncio.Future[Sequence[Result | Exception]] = asyncio.get_running_loop().create_future()
        count = len(items)
        if self._items + count > self._bounds.pending_items or self._bytes + size > self._bounds.pending_bytes:
            refusal = Overloaded("the scheduler has too much to write already: try again a little later")
            results.set_result([refusal] * count)
            return results
        self._items += count
        self._bytes += size
        self._enqueue(_Submission(items, keys, size, deadline_us, results))
        self._wake_sender()
        return results

    def _enqueue(self, submission: _Submission[Item, Result]) -> bool:
        """Whether it has a place in the queue; if not, it waits behind a key that has."""
        if not self._behind.keys().isdisjoint(submission.keys):
            key = next(key for key in submission.keys if key in self._behind)
            behind = self._behind[key]
            if behind is None:
                behind = self._behind[key] = deque()
            behind.append(submission)
            return False
        for key in submission.keys:
            self._behind[key] = None
        self._queue.append(submission)
        self._queued_items += len(submission.items)
        self._go_if_complete()
        return True

    def _wake_sender(self) -> None:
        if self._sender_waits or self._sending == self._bounds.in_flight:
            return
        # The sender starts in the loop's next iteration, so every caller that is ready in this one can join.
        self._sender_waits = True
        self._sending += 1
        sender = asyncio.get_running_loop().create_task(self._send_queue())
        self._senders.add(sender)
        sender.add_done_callback(self._senders.discard)

    async def _send_queue(self) -> None:
        try:
            while True:
                await self._wait_until_complete()
                self._sender_waits = False
                batch = self._next_batch()
                if self._queue:
                    self._wake_sender()
                if batch:
                    await self._send(batch)
                if not self._queue or self._sender_waits:
                    return
                self._sender_waits = True
        finally:
            self._sending -= 1
            self._go_if_complete()

    async def _wait_until_complete(self) -> None:
        """Wait until the batch is complete, or has waited for long enough."""
        if not self._is_complete():
            loop = asyncio.get_running_loop()
            self._complete = loop.create_future()
            timer = loop.call_later(_WAIT_MAX_S, self._go)
            try:
                await self._complete
            finally:
                timer.cancel()
                self._complete = None
        self._expected_callers = min(len(self._queue), _CALLERS_ENOUGH)

    def _is_complete(self) -> bool:
        if self._queued_items >= min(_ITEMS_ENOUGH, self._bounds.batch):
            return True
        return self._sending == 1 and len(self._queue) >= self._expected_callers

    def _go_if_complete(self) -> None:
        if self._complete is not None and self._is_complete():
            self._go()

    def _go(self) -> None:
        if self._complete is not None and not self._complete.done():
            self._complete.set_result(None)

    def _next_batch(self) -> list[_Submission[Item, Result]]:
        batch: list[_Submission[Item, Result]] = []
        keys: list[object] = []
        room, places = self._bounds.batch_bytes, self._bounds.batch
        now_us = self._clock.monotonic_us()
        while self._queue and room > 0 and (len(self._queue[0].items) <= places or not batch):
            submission = self._queue.popleft()
            self._queued_items -= len(submission.items)
            keys += submission.keys
            if submission.results.done() or _has_passed(submission, now_us):
                self._forget(submission)
            else:
                batch.append(submission)
                room -= submission.size
                places -= len(submission.items)
        self._enqueue_those_behind(keys)
        return batch

    def _enqueue_those_behind(self, keys: Sequence[object]) -> None:
        """The first submission behind each of these keys takes a place in the queue."""
        waiting = [(key, behind) for key in keys if (behind := self._behind.pop(key))]
        for key, behind in waiting:
            while behind:
                if self._enqueue(behind.popleft()):
                    # The others stay behind the one that was the first of them.
                    self._behind[key] = behind
                    break

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
            self._forget(submission)
            end = start + len(submission.items)
            if not submission.results.done():
                submission.results.set_result(results[start:end])
            start = end

    def _forget(self, submission: _Submission[Item, Result]) -> None:
        self._items -= len(submission.items)
        self._bytes -= submission.size


def _has_passed(submission: _Submission[Any, Any], now_us: int) -> bool:
    """Whether its deadline has passed; if so, its caller gets that as the result."""
    if submission.deadline_us is None or submission.deadline_us > now_us:
        return False
    passed = DeadlinePassed("the call's deadline passed before it was sent to the store")
    submission.results.set_result([passed] * len(submission.items))
    return True
