"""Early migration: rows that come due soon are migrated before older ones, so that a bulk load does not delay them.

Rows are migrated in the order in which they came in. A million actions of next week may have come in just before one of
this minute, and take many seconds. So while a shard has more than a page of incoming rows, the rows after the page are
searched, from where the last search ended, for rows that come due before their turn.
"""

from clepsydra.core.clock import Clock
from clepsydra.core.times import MILLISECOND_US, MINUTE_US, SECOND_US
from clepsydra.store.port import Page, Store
from clepsydra.worker.loop.shard import Shard
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally

_PAUSE_US = 100 * MILLISECOND_US
# A row that becomes visible later than this waits for its turn, or for the next search from the beginning.
_OVERLAP_US = SECOND_US
_SEARCH_US = MINUTE_US
# Further ahead than the next search, which finds what is due after that.
SOON_US = 2 * _SEARCH_US


class _Search:
    """One pass over the incoming rows of a shard."""

    def __init__(self, started_us: int) -> None:
        self.started_us = started_us
        self.next_read_us = started_us
        self.from_us = 0


class EarlyMigration:
    def __init__(self, store: Store, clock: Clock, settings: WorkerSettings, tally: Tally) -> None:
        self._store = store
        self._clock = clock
        self._page = settings.page
        self._tally = tally
        self._searches: dict[int, _Search] = {}

    async def migrate(self, shard: Shard, page: Page) -> None:
        """Search after a page of incoming rows that was full."""
        now_us = self._clock.now_us()
        search = self._searches.setdefault(shard.shard_id, _Search(now_us))
        if now_us >= search.started_us + _SEARCH_US:
            search = self._searches[shard.shard_id] = _Search(now_us)
        if now_us < search.next_read_us or _is_mostly_soon(page, now_us) or not shard.lock.is_held(now_us):
            return
        bounds = {"incoming_from_us": search.from_us, "until_us": now_us + SOON_US, "limit": self._page}
        rows = await self._store.soon(shard.shard_id, **bounds)
        if rows:
            self._tally.migrated += await self._store.migrate(rows, shard.writer.mark())
        for row in rows:
            shard.wrote(row.scheduled_at_us)
        if len(rows) == self._page:
            search.from_us = rows[-1].at_us
        else:
            search.from_us = max(search.from_us, now_us - _OVERLAP_US)
            search.next_read_us = now_us + _PAUSE_US


def _is_mostly_soon(page: Page, now_us: int) -> bool:
    """Then most rows behind it are soon as well, and migrating them first would only be an extra write for each."""
    soon = sum(due.row.scheduled_at_us <= now_us + SOON_US for due in page.incoming)
    return 2 * soon > len(page.incoming)
