"""Many callers, few store calls: what comes in while a batch is under way goes out together in the next.

A batch waits for as many callers as the one before it had, and a small one for the batch that is under way; though not
for long. Those who were just answered are likely to be back in a moment, and the more come along, the less each costs.
A caller who was alone the last time does not wait.

Memory is bounded: what waits or is under way is counted, by number and by size, and what does not fit is refused. What
nobody waits for any more is dropped before it is sent. A call costs one future, however many items it brings; a task
sends batches while any wait.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from clepsydra.core.clock import Clock
from clepsydra.scheduler.errors import DeadlinePassed, Overloaded

Item = TypeVar("Item")
Result = TypeVar("Result")

# Beyond so many callers a batch saves little by waiting for more; nor does one with so many items by waiting at all.
_COMPANY = 32
_LARGE = 100
# Long enough for some tens of callers to be back: with less, many callers fall apart into batches that are too small.
_PATIENCE_S = 0.008


class Bounds(NamedTuple):
    batch: int
    batch_bytes: int
    in_flight: int
    pending_items: int
    pending_bytes: int


class _Parcel(NamedTuple, Generic[Item, Result]):
    """Items of one caller that go out together, each under a name of its own if items have names."""

    items: Sequence[Item]
    names: Sequence[object]
    size: int
    deadline_us: int | None
    results: asyncio.Future[Sequence[Result | Exception]]


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
        # No two parcels in here share a name; another one stands behind that name, so that it holds up nobody else.
        self._waiting: deque[_Parcel[Item, Result]] = deque()
        self._items_waiting = 0
        self._behind: dict[object, deque[_Parcel[Item, Result]] | None] = {}
        self._items = 0
        self._bytes = 0
        self._senders: set[asyncio.Task[None]] = set()
        self._sending = 0
        # Whether a sender is about to make up a batch; how many callers it waits for, and what it waits on.
        self._woken = False
        self._expected = 0
        self._company: asyncio.Future[None] | None = None

    async def add(self, item: Item, deadline_us: int | None = None) -> Result | Exception:
        """Its result, or why there is none: an error is a result here, because the caller judges it."""
        names = () if self._name_of is None else (self._name_of(item),)
        [result] = await self._accept((item,), names, self._size_of(item), deadline_us)
        return result

    async def add_all(self, items: Sequence[Item], deadline_us: int | None = None) -> list[Result | Exception]:
        """The results of many. A caller who stops waiting takes them all back."""
        accepted = [self._accept(*parcel, deadline_us) for parcel in self._parcels(items)]
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

    def _parcels(self, items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], Sequence[object], int]]:
        """Items in their order, in parcels that fit into a batch and, if possible, into what room is left."""
        start = 0
        while start < len(items):
            places, room = self._room()
            parcel = items[start : start + max(1, places)]
            names = [] if self._name_of is None else [*map(self._name_of, parcel)]
            size = sum(map(self._size_of, parcel))
            if size <= room and len(set(names)) == len(names):
                yield parcel, names, size
            else:
                yield from self._smaller_parcels(parcel)
            start += len(parcel)

    def _smaller_parcels(self, items: Sequence[Item]) -> Iterator[tuple[Sequence[Item], Sequence[object], int]]:
        """Items that are too large to go together, or that share a name."""
        parcel: list[Item] = []
        names: dict[object, None] = {}
        size = 0
        places, room = self._room()
        for item in items:
            name = None if self._name_of is None else self._name_of(item)
            item_size = self._size_of(item)
            if parcel and (len(parcel) >= places or size + item_size > room or name in names):
                yield parcel, list(names), size
                parcel, names, size = [], {}, 0
                places, room = self._room()
            parcel.append(item)
            size += item_size
            if name is not None:
                names[name] = None
        if parcel:
            yield parcel, list(names), size

    def _room(self) -> tuple[int, int]:
        bounds = self._bounds
        return (
            min(bounds.batch, bounds.pending_items - self._items),
            min(bounds.batch_bytes, bounds.pending_bytes - self._bytes),
        )

    def _accept(
        self, items: Sequence[Item], names: Sequence[object], size: int, deadline_us: int | None
    ) -> asyncio.Future[Sequence[Result | Exception]]:
        results: asyncio.Future[Sequence[Result | Exception]] = asyncio.get_running_loop().create_future()
        count = len(items)
        if self._items + count > self._bounds.pending_items or self._bytes + size > self._bounds.pending_bytes:
            refusal = Overloaded("the scheduler has too much to write already: try again a little later")
            results.set_result([refusal] * count)
            return results
        self._items += count
        self._bytes += size
        self._line_up(_Parcel(items, names, size, deadline_us, results))
        self._wake_sender()
        return results

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
        try:
            while True:
                await self._linger()
                self._woken = False
                batch = self._next_batch()
                if self._waiting:
                    self._wake_sender()
                if batch:
                    await self._send(batch)
                if not self._waiting or self._woken:
                    return
                self._woken = True
        finally:
            self._sending -= 1
            self._go_if_complete()

    async def _linger(self) -> None:
        """Wait until the batch is complete, or patience is at its end."""
        if not self._is_complete():
            loop = asyncio.get_running_loop()
            self._company = loop.create_future()
            timer = loop.call_later(_PATIENCE_S, self._go)
            try:
                await self._company
            finally:
                timer.cancel()
                self._company = None
        self._expected = min(len(self._waiting), _COMPANY)

    def _is_complete(self) -> bool:
        if self._items_waiting >= min(_LARGE, self._bounds.batch):
            return True
        return self._sending == 1 and len(self._waiting) >= self._expected

    def _go_if_complete(self) -> None:
        if self._company is not None and self._is_complete():
            self._go()

    def _go(self) -> None:
        if self._company is not None and not self._company.done():
            self._company.set_result(None)

    def _line_up(self, parcel: _Parcel[Item, Result]) -> bool:
        """Whether it has a place in the line; if not, it stands behind one that has."""
        if not self._behind.keys().isdisjoint(parcel.names):
            name = next(name for name in parcel.names if name in self._behind)
            behind = self._behind[name]
            if behind is None:
                behind = self._behind[name] = deque()
            behind.append(parcel)
            return False
        for name in parcel.names:
            self._behind[name] = None
        self._waiting.append(parcel)
        self._items_waiting += len(parcel.items)
        self._go_if_complete()
        return True

    def _next_batch(self) -> list[_Parcel[Item, Result]]:
        batch: list[_Parcel[Item, Result]] = []
        left: list[object] = []
        room, places = self._bounds.batch_bytes, self._bounds.batch
        now_us = self._clock.monotonic_us()
        while self._waiting and room > 0 and (len(self._waiting[0].items) <= places or not batch):
            parcel = self._waiting.popleft()
            self._items_waiting -= len(parcel.items)
            left += parcel.names
            if parcel.results.done() or _has_passed(parcel, now_us):
                self._let_go(parcel)
            else:
                batch.append(parcel)
                room -= parcel.size
                places -= len(parcel.items)
        self._let_next_follow(left)
        return batch

    def _let_next_follow(self, names: Sequence[object]) -> None:
        followed = [(name, behind) for name in names if (behind := self._behind.pop(name))]
        for name, behind in followed:
            while behind:
                if self._line_up(behind.popleft()):
                    # The others stand behind the one that was the next of them.
                    self._behind[name] = behind
                    break

    async def _send(self, batch: list[_Parcel[Item, Result]]) -> None:
        items = batch[0].items if len(batch) == 1 else [item for parcel in batch for item in parcel.items]
        results: Sequence[Result | Exception]
        try:
            results = await self._call(items)
            assert len(results) == len(items), "each item has its own result"
        except Exception as error:  # noqa: BLE001  # whoever waits for the result judges it
            results = [error] * len(items)
        start = 0
        for parcel in batch:
            self._let_go(parcel)
            end = start + len(parcel.items)
            if not parcel.results.done():
                parcel.results.set_result(results[start:end])
            start = end

    def _let_go(self, parcel: _Parcel[Item, Result]) -> None:
        self._items -= len(parcel.items)
        self._bytes -= parcel.size


def _has_passed(parcel: _Parcel[Any, Any], now_us: int) -> bool:
    """Whether it is too late for a parcel; if so, its caller is told."""
    if parcel.deadline_us is None or parcel.deadline_us > now_us:
        return False
    passed = DeadlinePassed("the call's deadline passed before it was sent to the store")
    parcel.results.set_result([passed] * len(parcel.items))
    return True
