"""The store's own retries, in place of the SDK's.

The SDK forgets how earlier tries ended: an applied first try followed by a refusal looks as if nothing had happened.
Here every try sends exactly what the first one sent, and a try of unknown outcome is remembered until the call ends
(`clepsydra.store.outcomes`).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from clepsydra.core.backoff import Backoff
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, seconds
from clepsydra.store.errors import StoreError, Unavailable, Unusable
from clepsydra.store.outcomes import CERTAIN, UNCERTAIN, Certainty
from clepsydra.store.ydb.connection.errors import Aborted
from clepsydra.store.ydb.url import Location

Result = TypeVar("Result")

_BACKOFF = Backoff(first_us=5 * MILLISECOND_US, longest_us=500 * MILLISECOND_US)


class ItemResult(NamedTuple, Generic[Result]):
    """The result of one item of a batch, and what was certain about the item before the try that gave it."""

    result: Result
    certainty: Certainty


class Part(NamedTuple):
    """Items of a batch that are sent together, by their indexes."""

    indexes: Sequence[int]
    certainty: Certainty = CERTAIN


class Retry:
    def __init__(self, location: Location, ids: Ids) -> None:
        self._location = location
        self._ids = ids

    async def call(self, send: Callable[[], Awaitable[Result]], retry_s: float | None = None) -> Result:
        """Send until there is a result. A write must recognise what an earlier try has done."""
        pauses, certainty = self._pauses(retry_s), CERTAIN
        while True:
            try:
                return await send()
            except StoreError as error:
                certainty = certainty.after(error)
                if not await pauses.wait_after(error):
                    raise self._failure(error, certainty) from error

    async def batch(
        self, parts: Sequence[Sequence[int]], send: Callable[[Sequence[int]], Awaitable[dict[int, Result]]]
    ) -> list[ItemResult[Result]]:
        """Send a batch part by part, until each of its items has a result. Returns the results in order.

        An aborted part is sent again in halves, because the other transaction touched some of its rows, seldom all.
        If a part fails for good after another was done, the outcome of the whole call is unknown.
        """
        pauses = self._pauses()
        results: dict[int, ItemResult[Result]] = {}
        waiting = deque(Part(indexes) for indexes in parts)
        while waiting:
            part = waiting.popleft()
            try:
                found = await send(part.indexes)
            except StoreError as error:
                part = part._replace(certainty=part.certainty.after(error))
                if not await pauses.wait_after(error):
                    is_uncertain = results or any(each.certainty.may_be_done for each in (part, *waiting))
                    raise self._failure(error, UNCERTAIN if is_uncertain else CERTAIN) from error
                waiting.extendleft(reversed(_halves(part) if isinstance(error, Aborted) else [part]))
            else:
                results |= {index: ItemResult(result, part.certainty) for index, result in found.items()}
        return [results[index] for index in range(len(results))]

    def _pauses(self, retry_s: float | None = None) -> "_Pauses":
        return _Pauses(retry_s or self._location.limits.retry_s, self._ids)

    def _failure(self, error: StoreError, certainty: Certainty) -> StoreError:
        """What the caller gets when there is no further try. `certainty` is about all tries, not the last one alone."""
        what = f"the store {self._location} failed: {error}"
        if isinstance(error, Unusable):
            return certainty.failure(Unusable(what))
        return certainty.failure(Unavailable(what if certainty.may_be_done else f"{what}; try again"))


class _Pauses:
    """The pauses between the tries of one call, until its time is over."""

    def __init__(self, retry_s: float, ids: Ids) -> None:
        self._until_s = asyncio.get_running_loop().time() + retry_s
        self._ids = ids
        self._failures = 0

    async def wait_after(self, error: StoreError) -> bool:
        """Wait for the next try. False: there is none."""
        self._failures += 1
        pause_s = seconds(_BACKOFF.pause_us(self._failures, self._ids.fraction()))
        if isinstance(error, Unusable) or asyncio.get_running_loop().time() + pause_s >= self._until_s:
            return False
        await asyncio.sleep(pause_s)
        return True


def _halves(part: Part) -> list[Part]:
    if len(part.indexes) == 1:
        return [part]
    middle = len(part.indexes) // 2
    return [part._replace(indexes=part.indexes[:middle]), part._replace(indexes=part.indexes[middle:])]
