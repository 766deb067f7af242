"""Collects rows with old guids beyond the horizon, a page at a time, from shards that are idle.

It runs beside the sync loops: a row that comes due while a page is being read does not wait for the page.
"""

import asyncio
from collections.abc import Callable, Iterable

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock
from clepsydra.core.times import MILLISECOND_US, SECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Store
from clepsydra.worker.loop.shard import Shard
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally

# Between two pages of a shard: for an idle worker, a read costs more than the rows that it returns.
_PAUSE_US = 4 * SECOND_US
# A worker with few loops holds a shard for some tens of milliseconds only.
_POLL_S = 0.1


class _Pass:
    """One pass over the processing queue of a shard."""

    def __init__(self, started_us: int) -> None:
        self.started_us = started_us
        self.next_page_us = started_us
        self.after: tuple[int, str, str] | None = None


class StaleRowCollector:
    """The positions outlive the hold of a shard, so that shards which are held only briefly are collected too."""

    def __init__(
        self,
        store: Store,
        held_shards: Callable[[], Iterable[Shard]],
        clock: Clock,
        settings: WorkerSettings,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._store = store
        self._held_shards = held_shards
        self._clock = clock
        self._page = settings.collect_page
        self._pass_us = settings.collect_pass_ms * MILLISECOND_US
        self._tally = tally
        self._log = log
        self._passes: dict[int, _Pass] = {}

    async def run(self) -> None:
        while True:
            ready = [shard for shard in self._held_shards() if self._is_ready(shard)]
            try:
                for shard in ready:
                    await self._collect(shard)
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                self._log.warning("rows with old guids could not be collected", error=str(error))
                ready = []
            if not ready:
                await asyncio.sleep(_POLL_S)

    def _is_ready(self, shard: Shard) -> bool:
        now_us = self._clock.now_us()
        current = self._passes.get(shard.shard_id)
        return now_us < shard.wakes_at_us() and (current is None or now_us >= current.next_page_us)

    async def _collect(self, shard: Shard) -> None:
        """Read the next page of the shard, and drop its stale rows."""
        now_us = self._clock.now_us()
        current = self._passes.setdefault(shard.shard_id, _Pass(now_us))
        page = await self._store.stale(shard.shard_id, current.after, shard.until_us, self._page)
        if page.stale:
            await self._store.drop(page.stale)
            self._tally.collected += len(page.stale)
        current.after = page.next_after
        if page.next_after is None:
            self._passes[shard.shard_id] = _Pass(max(now_us, current.started_us + self._pass_us))
        else:
            # Where there are stale rows, more are likely to follow.
            current.next_page_us = now_us if page.stale else now_us + _PAUSE_US
