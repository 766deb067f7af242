"""Collects rows with old guids beyond the horizon, a page at a time, from shards that are idle.

It works beside the sync loops, on one shard after the other: a row that comes due while a page is looked at does not
wait for the page.
"""

import asyncio
from collections.abc import Callable, Iterable

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock
from clepsydra.core.moments import MILLISECOND_US, SECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Store
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.shard import Shard
from clepsydra.worker.tally import Tally

# Between two pages of a shard: to look at all costs an idle worker more than the rows that it looks at.
_PAUSE_US = 4 * SECOND_US
# Where loops are few, a shard is held for some tens of milliseconds only.
_BETWEEN_LOOKS_S = 0.1


class _Round:
    """One walk over a shard's queue."""

    def __init__(self, started_us: int) -> None:
        self.started_us = started_us
        self.next_page_us = started_us
        self.after: tuple[int, str, str] | None = None


class Collector:
    """The cursors outlive the hold of a shard, so that shards which are held only briefly are walked too."""

    def __init__(
        self,
        store: Store,
        held: Callable[[], Iterable[Shard]],
        clock: Clock,
        settings: WorkerSettings,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._store = store
        self._held = held
        self._clock = clock
        self._page = settings.collect_page
        self._round_us = settings.collect_pass_ms * MILLISECOND_US
        self._tally = tally
        self._log = log
        self._rounds: dict[int, _Round] = {}

    async def run(self) -> None:
        while True:
            wanted = [shard for shard in self._held() if self._is_wanted(shard)]
            try:
                for shard in wanted:
                    await self._collect(shard)
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                self._log.warning("rows with old guids could not be collected", error=str(error))
                wanted = []
            if not wanted:
                await asyncio.sleep(_BETWEEN_LOOKS_S)

    def _is_wanted(self, shard: Shard) -> bool:
        now_us = self._clock.now_us()
        walk = self._rounds.get(shard.shard_id)
        return now_us < shard.wakes_at_us() and (walk is None or now_us >= walk.next_page_us)

    async def _collect(self, shard: Shard) -> None:
        """Look at the next page of the shard, and drop what is stale."""
        now_us = self._clock.now_us()
        walk = self._rounds.setdefault(shard.shard_id, _Round(now_us))
        page = await self._store.stale(shard.shard_id, walk.after, shard.until_us, self._page)
        if page.stale:
            await self._store.migrate([], page.stale, shard.writing.mark())
            self._tally.collected += len(page.stale)
        walk.after = page.next_after
        if page.next_after is None:
            started_us = max(now_us, walk.started_us + self._round_us)
            self._rounds[shard.shard_id] = _Round(started_us)
        else:
            # Where there was garbage there is more.
            walk.next_page_us = now_us if page.stale else now_us + _PAUSE_US
