"""The sync loop: what a worker does with a shard, in the order of docs/architecture.md.

    1. acquire, of all the locks that are free or stale, the one that waited longest
    2. migrate what has come in
    3. read what is due now or within a short horizon
    4. at each row's time: begin, then execute
    5. linger while no other shard waits for a worker

Nothing here is needed for safety: the store's guard makes sure that no row is begun twice, whoever holds the lock.
"""

import asyncio

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import Clock, seconds
from clepsydra.core.events import Turn
from clepsydra.core.ids import Ids
from clepsydra.core.moments import MILLISECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import AdvanceOutcome, Due, Page, Queue, Row, Store
from clepsydra.worker.locks import Heart
from clepsydra.worker.overtaking import Overtaking
from clepsydra.worker.pool import Pool
from clepsydra.worker.rest import Rest
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.shard import Shard
from clepsydra.worker.tally import Tally
from clepsydra.worker.turns import Taken, Turns
from clepsydra.worker.writing import Writing

# Short attempts give their places back soon, and a shard that is kept meanwhile need not be read anew. One whose rows
# have waited for so long in all since they were read is given back: another worker may have room for it.
_ROOM_WITHIN_US = 300 * MILLISECOND_US

# A loop takes no more than this share of a large pool at once. So the store begins some attempts while others are
# executed and others finished, and actions of all shards that lie together in the store are written together.
_SHARES = 4
_LEAST_SHARE = 100

# A member of an enum is looked up at some cost, and these are asked for with every action that is executed.
_DONE, _BEGIN = AdvanceOutcome.DONE, Turn.BEGIN


class SyncLoop:
    def __init__(
        self,
        store: Store,
        heart: Heart,
        pool: Pool,
        turns: Turns,
        overtaking: Overtaking,
        clock: Clock,
        ids: Ids,
        settings: WorkerSettings,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._store = store
        self._heart = heart
        self._pool = pool
        self._turns = turns
        self._overtaking = overtaking
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._share = max(_LEAST_SHARE, settings.attempts // _SHARES)
        self._tally = tally
        self._log = log
        self._rest = Rest()
        self._stopping = False
        self._without_shard = 0
        # The shard that is held now.
        self.shard: Shard | None = None

    async def run(self) -> None:
        while not self._stopping:
            try:
                await self._iterate()
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                self._log.warning("a sync iteration was given up", error=str(error))
                await self._rest_without_shard()

    async def _iterate(self) -> None:
        """One sync iteration: it has a guid of its own, under which it locks and writes."""
        await self._rest.wait(self._pool.wait_for_room())
        shard = await self._acquire()
        if shard is None:
            await self._rest_without_shard()
            return
        self.shard, self._without_shard = shard, 0
        try:
            while self._lingers(shard):
                if self._wants_a_look(shard):
                    await self._look(shard)
                await self._begin(shard, self._take_turns(shard, shard.take_due(self._clock.now_us(), self._room())))
                await self._rest_on(shard)
        finally:
            self.shard = None
            await self._heart.release(shard.lock)

    def stop(self) -> None:
        """Begin nothing more, and release the shard."""
        self._stopping = True
        self._rest.cut_short()

    def wrote(self, at_us: int) -> None:
        """An outcome put a row of the held shard to this time."""
        if self.shard is not None and self.shard.wrote(at_us):
            # It is read ahead of its time, as all others are, and those that follow it along with it.
            self.shard.look_by(self._clock.now_us() + self._settings.poll_min_ms * MILLISECOND_US)
            self._rest.cut_short()

    async def _acquire(self) -> Shard | None:
        sync_guid = self._ids.guid()
        lock = None if self._stopping else await self._heart.acquire(sync_guid)
        if lock is None:
            return None
        writing = Writing(self._store, self._clock, self._ids, self._tally, sync_guid)
        return Shard(lock, writing, self._clock.now_us())

    def _room(self) -> int:
        return min(self._share, self._pool.room)

    def _lingers(self, shard: Shard) -> bool:
        now_us = self._clock.now_us()
        if self._stopping or not shard.lock.is_held(now_us):
            return False
        if shard.waited_for_room_us >= _ROOM_WITHIN_US and self._pool.room == 0 and shard.has_due(now_us):
            return False
        stayed_us = now_us - shard.since_us
        if self._heart.waiting and stayed_us >= self._settings.poll_min_ms * MILLISECOND_US:
            return shard.has_due(now_us)
        return stayed_us < self._settings.shard_max_ms * MILLISECOND_US

    def _wants_a_look(self, shard: Shard) -> bool:
        """Rows that were read and wait for room come first: to read them again would tell nothing new."""
        now_us = self._clock.now_us()
        return now_us >= shard.look_at_us and not shard.has_due(now_us)

    async def _look(self, shard: Shard) -> None:
        """Read what has come in and what comes due, in one snapshot; let through what has come in."""
        settings, now_us = self._settings, self._clock.now_us()
        # With a full pool one row still tells whether anything is due.
        limit = max(1, min(settings.page, self._pool.room))
        until_us = now_us + settings.horizon_ms * MILLISECOND_US
        page = await self._store.due(
            shard.shard_id,
            incoming_from_us=shard.incoming.from_us,
            incoming_limit=settings.page,
            from_us=shard.processing.from_us,
            until_us=until_us,
            limit=limit,
        )
        shard.until_us, shard.waited_for_room_us = until_us, 0
        await self._let_through(shard, page, now_us, limit)
        if len(page.incoming) == settings.page:
            await self._overtaking.overtake(shard, page)
            shard.look_soon()
            return
        shard.found(
            # What lies ahead is in memory now. Only where something comes in is more to be expected.
            anything=bool(page.incoming),
            now_us=now_us,
            first_us=settings.poll_min_ms * MILLISECOND_US,
            # By then rows may come due that this look could not see.
            longest_us=min(settings.poll_max_ms, max(1, settings.horizon_ms // 2)) * MILLISECOND_US,
            fraction=self._ids.fraction(),
        )
        if len(page.due) == limit:
            # There may be more behind the last of them; until its time has come there is nothing to do with that.
            shard.look_by(page.due[-1].row.at_us)

    async def _let_through(self, shard: Shard, page: Page, now_us: int, limit: int) -> None:
        """Migrate what has come in, except what is already due: that goes straight to its attempt.

        What is due and finds no room waits where it is, which saves a write, unless there is a backlog in
        processing_queue as well: there all of them are taken in the order of their times.
        """
        stale = [due.row for due in (*page.incoming, *page.due) if due.action is None]
        live = [due for due in page.incoming if due.action is not None] if stale else page.incoming
        has_backlog = len(page.due) >= limit
        at_once = [due for due in live if not has_backlog and due.row.scheduled_at_us <= now_us]
        migrating = [due for due in live if has_backlog or due.row.scheduled_at_us > now_us]
        room = max(0, min(limit - len(page.due), self._room()))
        straight, waiting = at_once[:room], at_once[room:]
        shard.expect([*waiting, *(due for due in page.due if due.action is not None)])
        turns = self._take_turns(shard, straight)
        both = asyncio.gather(self._migrate(shard, migrating, stale), self._begin(shard, turns), return_exceptions=True)
        for failed in await both:
            if failed is not None:
                raise failed
        # A full page tells nothing of what lies behind its last row.
        seen_us = page.incoming[-1].row.at_us if len(page.incoming) == self._settings.page else now_us
        shard.incoming.drained(min((due.row.at_us for due in waiting), default=seen_us), now_us)
        shard.processing.drained(min((due.row.at_us for due in page.due), default=shard.until_us), now_us)

    async def _migrate(self, shard: Shard, migrating: list[Due], stale: list[Row]) -> None:
        if not migrating and not stale:
            return
        if not shard.lock.is_held(self._clock.now_us()):
            return
        moved = await self._store.migrate([due.row for due in migrating], stale, shard.writing.mark())
        self._tally.migrated += moved
        self._tally.collected += len(stale)
        migrated = [Due(_migrated(due.row), due.action) for due in migrating]
        for due in migrated:
            shard.processing.wrote(due.row.at_us)
        shard.expect([*shard.ahead, *(due for due in migrated if due.row.at_us <= shard.until_us)])

    def _take_turns(self, shard: Shard, rows: list[Due]) -> list[Taken]:
        """Decide what each row asks for, and take the places of the attempts among them."""
        now_us = self._clock.now_us()
        if not rows or not shard.lock.is_held(now_us):
            return []
        turns = [self._turns.take(due, now_us) for due in rows]
        self._pool.take(sum(turn.attempt is not None for turn in turns))
        return turns

    async def _begin(self, shard: Shard, turns: list[Taken]) -> None:
        """Write all turns at once; then execute the attempts that have begun."""
        if not turns:
            return
        places, done = sum(turn.attempt is not None for turn in turns), list[Taken]()
        try:
            advances = [turn.advance for turn in turns]
            outcomes = await shard.writing.advance(advances, shard.lock.valid_until_us)
            done = turns
            if outcomes.count(_DONE) < len(outcomes):
                done = [turn for turn, outcome in zip(turns, outcomes, strict=True) if outcome is _DONE]
        finally:
            attempts = [turn.attempt for turn in done if turn.attempt is not None]
            self._pool.give_back(places - len(attempts))
        self._pool.start(attempts)
        for turn in done:
            if turn.turn is _BEGIN:
                continue
            self._count(turn)
            if turn.attempt is None and turn.advance.to_us is not None:
                shard.wrote(turn.advance.to_us)

    def _count(self, taken: Taken) -> None:
        if taken.turn is Turn.INTERRUPT:
            self._tally.found_interrupted += 1
        elif taken.turn is Turn.EXPIRE:
            self._tally.expired += 1
        elif taken.turn is Turn.PURGE:
            self._tally.purged += 1
        elif taken.turn is None:
            self._tally.unreadable += 1
            row = taken.advance.row
            self._log.error("an action cannot be decoded and was set aside", action=row.action_id, guid=row.guid)

    async def _rest_on(self, shard: Shard) -> None:
        """Wait for the next row's time, the next look, or a hint that something has come in."""
        now_us = self._clock.now_us()
        pause_us = shard.wakes_at_us() - now_us
        if self._stopping:
            return
        if pause_us > 0:
            await self._rest.wait(self._wait_for_hint(shard, pause_us))
        elif self._pool.room == 0 and shard.has_due(now_us):
            await self._rest.wait(self._pool.wait_for_room(seconds(_ROOM_WITHIN_US)))
            shard.waited_for_room_us += self._clock.now_us() - now_us

    async def _wait_for_hint(self, shard: Shard, pause_us: int) -> None:
        if await self._store.wait(shard.shard_id, seconds(pause_us)):
            shard.look_soon()

    async def _rest_without_shard(self) -> None:
        settings = self._settings
        pause_ms = min(settings.poll_max_ms, settings.poll_min_ms * 2**self._without_shard)
        self._without_shard = min(self._without_shard + 1, 16)
        if not self._stopping:
            await self._rest.wait(asyncio.sleep(pause_ms / 1000 * (1 - 0.25 * self._ids.fraction())))


def _migrated(row: Row) -> Row:
    """Where migrate puts a row."""
    return Row(Queue.PROCESSING, row.shard_id, row.scheduled_at_us, row.action_id, row.guid, row.scheduled_at_us)
