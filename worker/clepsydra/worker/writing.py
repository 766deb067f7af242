"""Advances rows through whatever the store does in between, without ever doing it twice.

Every call has a mark of its own, and a repetition carries the same one: the store recognises what an earlier try has
done. After one try of unknown outcome, a row that is gone may have been moved on from where our try had put it, so
its outcome stays unknown.
"""

import asyncio
from collections.abc import Sequence

from clepsydra.core.clock import Clock, seconds
from clepsydra.core.ids import Ids
from clepsydra.core.moments import MILLISECOND_US, SECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Store
from clepsydra.worker.tally import Tally

_FIRST_PAUSE_US = 10 * MILLISECOND_US
_LONGEST_PAUSE_US = SECOND_US


class Writing:
    """Writes under one guid: that of a sync iteration, of the finisher, or of the lease keeper."""

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
        if len({advance.row.action_id for advance in advances}) == len(advances):
            return await self._advance(advances, until_us)
        # Two lives of one action are in flight here, and a batch names an action at most once.
        once, again = _split(advances)
        outcomes = dict(zip(once, await self._advance([advances[n] for n in once], until_us), strict=True))
        outcomes |= zip(again, await self.advance([advances[n] for n in again], until_us), strict=True)
        return [outcomes[n] for n in range(len(advances))]

    async def _advance(self, advances: Sequence[Advance], until_us: int) -> list[AdvanceOutcome]:
        mark, pause_us, may_be_done = self.mark(), _FIRST_PAUSE_US, False
        while True:
            try:
                outcomes = await self._store.advance(advances, mark)
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                may_be_done = may_be_done or isinstance(error, OutcomeUnknown)
                pause_us = round(pause_us * (0.5 + self._ids.fraction()))
                if self._clock.now_us() + pause_us >= until_us:
                    raise
                await asyncio.sleep(seconds(pause_us))
                pause_us = min(2 * pause_us, _LONGEST_PAUSE_US)
            else:
                return [_unless_unknown(outcome) for outcome in outcomes] if may_be_done else outcomes


def _split(advances: Sequence[Advance]) -> tuple[list[int], list[int]]:
    """The places where an action is named for the first time, and those where it is named again."""
    seen: set[str] = set()
    once: list[int] = []
    again: list[int] = []
    for n, advance in enumerate(advances):
        (again if advance.row.action_id in seen else once).append(n)
        seen.add(advance.row.action_id)
    return once, again


def _unless_unknown(outcome: AdvanceOutcome) -> AdvanceOutcome:
    return AdvanceOutcome.UNKNOWN if outcome is AdvanceOutcome.GONE else outcome
