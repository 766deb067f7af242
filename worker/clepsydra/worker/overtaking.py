"""Lets through what comes due soon ahead of what came in before it: a load of the far future delays nobody.

What comes in is let through in the order in which it came. A million actions of next week may have come in just before
one of this minute, and take many seconds. So while a shard has more than a page of them, the arrivals behind are looked
through, from where the last look ended, for rows that come due before their turn would have come.
"""

from clepsydra.core.clock import Clock
from clepsydra.core.moments import MILLISECOND_US, MINUTE_US, SECOND_US
from clepsydra.store.port import Page, Store
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.shard import Shard
from clepsydra.worker.tally import Tally

_PAUSE_US = 100 * MILLISECOND_US
# Whatever becomes visible later than this waits for its turn, or for the next round.
_OVERLAP_US = SECOND_US
_ROUND_US = MINUTE_US
# Further ahead than the next round, which finds what is due after that.
SOON_US = 2 * _ROUND_US


class _Round:
    """One walk over the arrivals of a shard."""

    def __init__(self, started_us: int) -> None:
        self.started_us = started_us
        self.next_look_us = started_us
        self.from_us = 0


class Overtaking:
    def __init__(self, store: Store, clock: Clock, settings: WorkerSettings, tally: Tally) -> None:
        self._store = store
        self._clock = clock
        self._page = settings.page
        self._tally = tally
        self._rounds: dict[int, _Round] = {}

    async def overtake(self, shard: Shard, page: Page) -> None:
        """Look behind a page of arrivals that was full."""
        now_us = self._clock.now_us()
        walk = self._rounds.setdefault(shard.shard_id, _Round(now_us))
        if now_us >= walk.started_us + _ROUND_US:
            walk = self._rounds[shard.shard_id] = _Round(now_us)
        if now_us < walk.next_look_us or _is_mostly_soon(page, now_us) or not shard.lock.is_held(now_us):
            return
        bounds = {"incoming_from_us": walk.from_us, "until_us": now_us + SOON_US, "limit": self._page}
        rows = await self._store.soon(shard.shard_id, **bounds)
        if rows:
            self._tally.migrated += await self._store.migrate(rows, [], shard.writing.mark())
        for row in rows:
            shard.wrote(row.scheduled_at_us)
        if len(rows) == self._page:
            walk.from_us = rows[-1].at_us
        else:
            walk.from_us = max(walk.from_us, now_us - _OVERLAP_US)
            walk.next_look_us = now_us + _PAUSE_US


def _is_mostly_soon(page: Page, now_us: int) -> bool:
    """Then those behind it are, too, most likely, and to let them through first would be a write more for each."""
    soon = sum(due.row.scheduled_at_us <= now_us + SOON_US for due in page.incoming)
    return 2 * soon > len(page.incoming)
