"""The store's own retries, in place of the SDK's.

The SDK forgets how earlier tries ended, so an applied first try followed by a refusal looks as if nothing had happened.
Here every try sends exactly what the first one sent, and one try of unknown outcome is remembered for as long as the
call lasts: from then on every failure is "unknown". A batch that was aborted is tried again in halves, because whoever
was faster touched one of its rows and not all.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from clepsydra.core.ids import Ids
from clepsydra.store.ydb.errors import Failed, Nature, given_up
from clepsydra.store.ydb.location import Location

Result = TypeVar("Result")
Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.5


class Answer(NamedTuple, Generic[Outcome]):
    outcome: Outcome
    # An earlier try of this very item may have been done.
    after_unknown: bool


class Part(NamedTuple):
    """Some items of a batch, by their places in it."""

    places: Sequence[int]
    after_unknown: bool


class Patience:
    """How long one call goes on."""

    def __init__(self, retry_s: float, ids: Ids) -> None:
        self._until_s = asyncio.get_running_loop().time() + retry_s
        self._ids = ids
        self._pause_s = _FIRST_PAUSE_S

    async def bear(self, failed: Failed) -> bool:
        """Wait for the next try. False: there is none."""
        pause_s = self._pause_s * (0.5 + self._ids.fraction())
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        if failed.nature is Nature.HOPELESS or asyncio.get_running_loop().time() + pause_s >= self._until_s:
            return False
        await asyncio.sleep(pause_s)
        return True


class Tries:
    def __init__(self, location: Location, ids: Ids) -> None:
        self._location = location
        self._ids = ids

    async def read(self, send: Callable[[], Awaitable[Result]]) -> Result:
        """What only reads can be tried as often as one likes."""
        patience = self._patience()
        while True:
            try:
                return await send()
            except Failed as failed:
                if not await patience.bear(failed):
                    raise given_up(failed, self._location, may_be_done=False) from failed

    async def write(self, send: Callable[[], Awaitable[Result]]) -> Result:
        """A change that recognises its own work."""
        patience, may_be_done = self._patience(), False
        while True:
            try:
                return await send()
            except Failed as failed:
                may_be_done = may_be_done or failed.nature is Nature.UNKNOWN
                if not await patience.bear(failed):
                    raise given_up(failed, self._location, may_be_done=may_be_done) from failed

    async def write_batch(
        self, parts: Sequence[Sequence[int]], send: Callable[[Sequence[int]], Awaitable[dict[int, Outcome]]]
    ) -> dict[int, Answer[Outcome]]:
        """Send the items at these places, part by part, until each has its answer.

        `send` may leave out some of its items: those were done, or not, without telling how. If a part fails for
        good after another was done, the call as a whole may have been done.
        """
        patience = self._patience()
        answers: dict[int, Answer[Outcome]] = {}
        waiting = deque(Part(places, after_unknown=False) for places in parts)
        while waiting:
            part = waiting.popleft()
            try:
                outcomes = await send(part.places)
            except Failed as failed:
                part = part._replace(after_unknown=part.after_unknown or failed.nature is Nature.UNKNOWN)
                if not await patience.bear(failed):
                    may_be_done = bool(answers) or any(other.after_unknown for other in (part, *waiting))
                    raise given_up(failed, self._location, may_be_done=may_be_done) from failed
                waiting.extendleft(reversed(_halves(part) if failed.nature is Nature.ABORTED else [part]))
            else:
                answers |= {place: Answer(outcome, part.after_unknown) for place, outcome in outcomes.items()}
                untold = [place for place in part.places if place not in outcomes]
                if untold:
                    waiting.appendleft(Part(untold, after_unknown=True))
        return answers

    def _patience(self) -> Patience:
        return Patience(self._location.limits.retry_s, self._ids)


def _halves(part: Part) -> list[Part]:
    if len(part.places) == 1:
        return [part]
    middle = len(part.places) // 2
    return [part._replace(places=part.places[:middle]), part._replace(places=part.places[middle:])]
