"""Writes advances, and tries again until the store has answered.

Every call has a mark of its own, and a repeated try carries the same one, so that the store recognises what an earlier
try has done.
"""

import asyncio
from collections.abc import Sequence

from clepsydra.core.backoff import Backoff
from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, SECOND_US, seconds
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.outcomes import CERTAIN
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Store
from clepsydra.worker.tally import Tally

_BACKOFF = Backoff(first_us=10 * MILLISECOND_US, longest_us=SECOND_US)


class AdvanceWriter:
    """Writes under one guid: that of a sync iteration, of the completer, or of the lease keeper."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, tally: Tally, guid: str) -> None:
        self.guid = guid
        self._store = store
        self._clock = clock
        self._ids = ids
        self._tally = tally
        self._last_mark_us = 0

    def mark(self) -> Mark:
        """Unique per call, even if the clock stands still."""
        self._last_mark_us = max(self._clock.now_us(), self._last_mark_us + 1)
        return Mark(self.guid, self._last_mark_us)

    async def advance(self, advances: Sequence[Advance], until_us: int) -> list[AdvanceOutcome]:
        """Try until it is done or `until_us` has passed; then raise the store's last error."""
        if len({advance.row.action_id for advance in advances}) < len(advances):
            return await self._advance_in_two(advances, until_us)
        mark, certainty, failures = self.mark(), CERTAIN, 0
        while True:
            try:
                outcomes = await self._store.advance(advances, mark)
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                certainty = certainty.after(error)
                failures += 1
                pause_us = _BACKOFF.pause_us(failures, self._ids.fraction())
                if self._clock.now_us() + pause_us >= until_us:
                    raise
                await asyncio.sleep(seconds(pause_us))
            else:
                return certainty.advance_outcomes(outcomes) if failures else outcomes

    async def _advance_in_two(self, advances: Sequence[Advance], until_us: int) -> list[AdvanceOutcome]:
        """Two lives of one action are in flight here, and a batch names an action at most once."""
        first, again = _split(advances)
        outcomes = dict(zip(first, await self.advance([advances[n] for n in first], until_us), strict=True))
        outcomes |= zip(again, await self.advance([advances[n] for n in again], until_us), strict=True)
        return [outcomes[n] for n in range(len(advances))]


def _split(advances: Sequence[Advance]) -> tuple[list[int], list[int]]:
    """The places where an action is named for the first time, and those where it is named again."""
    seen: set[str] = set()
    first: list[int] = []
    again: list[int] = []
    for n, advance in enumerate(advances):
        (again if advance.row.action_id in seen else first).append(n)
        seen.add(advance.row.action_id)
    return first, again
