"""The sync loop: what a worker does with a shard, in the order of docs/architecture.md.

    1. acquire the free or stale lock that waited longest
    2. migrate what has come in
    3. read what is due now or within a short horizon
    4. at each row's time: begin, then execute
    5. linger while no other shard waits for a worker

Nothing here is needed for safety: the store's guard makes sure that no row is begun twice, even without a lock.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.events import Decision
from clepsydra.core.backoff import Backoff
from clepsydra.core.clock import BoundedClock
from clepsydra.core.ids import Ids, WorkerGuids
from clepsydra.core.lifecycle import plan_begins
from clepsydra.core.plan import Begin, BeginTerms
from clepsydra.core.times import END_OF_TIME_US, MILLISECOND_US, seconds
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Advance, AdvanceOutcome, Due, Page, Queue, Row, Store
from clepsydra.v1.action_pb2 import Status
from clepsydra.worker.attempts.advance_writer import AdvanceWriter
from clepsydra.worker.attempts.change_watch import ChangeWatch
from clepsydra.worker.attempts.pool import Pool
from clepsydra.worker.capacity import Needs
from clepsydra.worker.loop.backlog import Backlog, Start
from clepsydra.worker.loop.early_migration import EarlyMigration
from clepsydra.worker.loop.heartbeat import ShardLocks
from clepsydra.worker.loop.holders import find_holders, interrupted_among
from clepsydra.worker.loop.interruptible_wait import InterruptibleWait
from clepsydra.worker.loop.shard import Shard
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally

# Short attempts give their places back soon, and a shard that is kept meanwhile need not be read again. A shard whose
# due rows have waited for this long, in all, is released: another worker may have room for it.
_WAIT_FOR_ROOM_US = 300 * MILLISECOND_US

# A loop takes at most this share of a large pool at once. So the store begins some attempts while others are executed
# and others finished, and actions of all shards that lie together in the store are written together.
_POOL_SHARES = 4
_SHARE_MIN = 100

# A row that is due, and what it needs that is taken.
Refused = tuple[Needs, Due]

# Looking up a member of an enum takes time, and these are compared for every action.
_DONE, _BEGIN, _INTERRUPT = AdvanceOutcome.DONE, Decision.BEGIN, Decision.INTERRUPT

# Interrupted attempts that begin again in one write.
_AGAIN_TOGETHER = 50


class SyncLoop:
    def __init__(
        self,
        store: Store,
        locks: ShardLocks,
        pool: Pool,
        changes: ChangeWatch,
        terms: BeginTerms,
        early_migration: EarlyMigration,
        backlogs: dict[int, Backlog],
        clock: BoundedClock,
        ids: Ids,
        guids: WorkerGuids,
        settings: WorkerSettings,
        tally: Tally,
        log: FilteringBoundLogger,
    ) -> None:
        self._store = store
        self._locks = locks
        self._pool = pool
        self._changes = changes
        self._terms = terms
        self._early_migration = early_migration
        # By shard, for all loops of the worker.
        self._backlogs = backlogs
        self._clock = clock
        self._ids = ids
        self._guids = guids
        self._page = settings.page
        self._horizon_us = settings.horizon_ms * MILLISECOND_US
        self._poll_min_us = settings.poll_min_ms * MILLISECOND_US
        self._shard_max_us = settings.shard_max_ms * MILLISECOND_US
        # Half a horizon later, rows may be due that the last read could not see.
        longest_us = min(settings.poll_max_ms * MILLISECOND_US, max(MILLISECOND_US, self._horizon_us // 2))
        self._read_backoff = Backoff(self._poll_min_us, longest_us, jitter=0.25)
        self._lock_backoff = Backoff(self._poll_min_us, settings.poll_max_ms * MILLISECOND_US, jitter=0.25)
        self._share = max(_SHARE_MIN, settings.attempts // _POOL_SHARES)
        self._tally = tally
        self._log = log
        self._wait = InterruptibleWait()
        self._stopping = False
        self._iterations_without_shard = 0
        # The shard that is held now.
        self.shard: Shard | None = None

    async def run(self) -> None:
        while not self._stopping:
            try:
                await self._iterate()
            except (Unavailable, OutcomeUnknown) as error:
                self._tally.store_failures += 1
                self._log.warning("a sync iteration was given up", error=str(error))
                await self._wait_without_shard()

    async def _iterate(self) -> None:
        """One sync iteration: it has a guid of its own, under which it locks and writes."""
        await self._wait.wait(self._pool.wait_for_room())
        shard = await self._acquire()
        if shard is None:
            await self._wait_without_shard()
            return
        self.shard, self._iterations_without_shard = shard, 0
        try:
            while self._lingers(shard):
                now_us = self._clock.now_us()
                # Due rows that wait for room come first: reading them again would bring nothing new.
                if not shard.has_due(now_us) and shard.is_to_be_read(now_us):
                    await self._migrate_and_read(shard)
                begins, refused = await self._plan_due(shard, shard.take_due(self._clock.now_us(), self._room()))
                await self._set_waiting(shard, refused)
                await self._begin(shard, begins)
                await self._wait_for_next(shard)
        finally:
            self.shard = None
            shard.backlog.released(self._clock.now_us())
            await self._locks.release(shard.lock)

    def stop(self) -> None:
        """Begin nothing more, and release the shard."""
        self._stopping = True
        self._wait.interrupt()

    def wrote(self, at_us: int) -> None:
        """An outcome moved a row of the held shard to this time."""
        if self.shard is not None and self.shard.wrote(at_us):
            # Read it ahead of its time, as all others, together with those that follow it.
            self.shard.read_by(self._clock.now_us() + self._poll_min_us)
            self._wait.interrupt()

    def freed(self) -> None:
        """Something was given back that rows wait for."""
        if self.shard is not None and (self.shard.backlog.waiting or self.shard.ahead):
            self._wait.interrupt()

    async def _acquire(self) -> Shard | None:
        sync_guid = self._guids.sync()
        lock = None if self._stopping else await self._locks.acquire(sync_guid)
        if lock is None:
            return None
        writer = AdvanceWriter(self._store, self._clock, self._ids, self._tally, sync_guid)
        backlog = self._backlogs.setdefault(lock.shard_id, Backlog(self._page))
        return Shard(lock, writer, backlog, self._clock.now_us())

    def _lingers(self, shard: Shard) -> bool:
        now_us = self._clock.now_us()
        if self._stopping or not shard.lock.is_held(now_us):
            return False
        if shard.waited_for_room_us >= _WAIT_FOR_ROOM_US and self._pool.room == 0 and shard.has_due(now_us):
            return False
        held_for_us = now_us - shard.since_us
        if self._locks.waiting and held_for_us >= self._poll_min_us:
            return shard.has_due(now_us)
        return held_for_us < self._shard_max_us

    async def _migrate_and_read(self, shard: Shard) -> None:
        """Read what has come in and what comes due, in one snapshot; migrate what has come in."""
        now_us = self._clock.now_us()
        start = shard.backlog.start(shard.processing.from_us, now_us)
        # With a full pool, one row still shows whether anything is due. Rows that will wait need no room.
        limit = max(1, min(self._page, self._pool.room)) if start.is_beginning else self._page
        until_us = now_us + self._horizon_us
        from_us, *after = start.position
        page = await self._store.due(
            shard.shard_id,
            incoming_from_us=shard.incoming.from_us,
            incoming_limit=self._page,
            from_us=from_us,
            until_us=until_us,
            limit=limit,
            after=(after[0], after[1]),
        )
        shard.until_us, shard.waited_for_room_us = until_us, 0
        if self._changes.watched:
            self._changes.arrived(page.incoming)
        shard.backlog.has_read(start, page.due, is_full=len(page.due) == limit, now_us=now_us)
        await self._migrate_or_begin(shard, start, page, now_us, limit)
        if len(page.incoming) == self._page:
            await self._early_migration.migrate(shard, page)
            shard.read_now()
            return
        # What comes due is in memory now, so only new rows of incoming_queue make another read worth while.
        shard.plan_read(now_us, self._read_backoff, self._ids.fraction(), found_incoming=bool(page.incoming))
        if len(page.due) == limit:
            # There may be more rows behind the last one; nothing can be done with them before its time.
            shard.read_by(page.due[-1].row.at_us)

    async def _migrate_or_begin(self, shard: Shard, start: Start, page: Page, now_us: int, limit: int) -> None:
        """Migrate what has come in, except what is due already: that is begun at once, which saves a write.

        Incoming rows that are due and find no room stay where they are. But if processing_queue has a backlog as well,
        they are migrated, so that all due rows are begun in the order of their times; and so are those that cannot
        begin because what they need is taken.
        """
        stale = [due.row for due in (*page.incoming, *page.due) if due.action is None]
        live = [due for due in page.incoming if due.action is not None] if stale else page.incoming
        has_backlog = len(page.due) >= limit
        due_already = [due for due in live if not has_backlog and due.row.scheduled_at_us <= now_us]
        migrating = [due for due in live if has_backlog or due.row.scheduled_at_us > now_us]
        room = shard.admission.limit(now_us, max(0, min(limit - len(page.due), self._room())))
        begun_at_once, left_behind = due_already[:room], due_already[room:]
        shard.keep_read(start, left_behind, [due for due in page.due if due.action is not None])
        begins, refused = self._plan(shard, begun_at_once)
        migrating += [due for _, due in refused]
        parts = self._migrate(shard, migrating, stale), self._begin(shard, begins)
        for failed in await asyncio.gather(*parts, return_exceptions=True):
            if failed is not None:
                raise failed
        # A full page says nothing of what lies behind its last row.
        seen_us = page.incoming[-1].row.at_us if len(page.incoming) == self._page else now_us
        shard.incoming.drained(min((due.row.at_us for due in left_behind), default=seen_us), now_us)
        if start.is_beginning:
            shard.processing.drained(min((due.row.at_us for due in page.due), default=shard.until_us), now_us)

    async def _migrate(self, shard: Shard, migrating: Sequence[Due], stale: Sequence[Row]) -> None:
        """Move rows to processing_queue, and drop those with old guids."""
        if not shard.lock.is_held(self._clock.now_us()):
            return
        if stale:
            await self._store.drop(stale)
            self._tally.collected += len(stale)
        if migrating:
            self._tally.migrated += await self._store.migrate([due.row for due in migrating], shard.writer.mark())
            shard.migrated(migrating)

    def _plan(
        self, shard: Shard, rows: Sequence[Due], terms: BeginTerms | None = None
    ) -> tuple[list[Begin], list[Refused]]:
        """Decide what to do with each row, and take what the attempts among them need. Some may have to wait for it."""
        now_us = self._clock.now_us()
        if not rows or not shard.lock.is_held(now_us):
            return [], []
        begins = plan_begins(rows, now_us, terms or self._terms, self._clock.latest_us())
        lacking = self._pool.take(begins)
        if not lacking:
            return begins, []
        refused = [(needs, rows[n]) for n, needs in lacking.items()]
        shard.admission.refused(refused[-1][0], now_us)
        return [begin for n, begin in enumerate(begins) if n not in lacking], refused

    async def _plan_due(self, shard: Shard, rows: Sequence[Due]) -> tuple[list[Begin], list[Refused]]:
        """As `_plan`, and for attempts that were interrupted find out who had them."""
        interrupted = interrupted_among(rows)
        if not interrupted:
            return self._plan(shard, rows)
        holders = await find_holders(self._store, self._locks.taken, interrupted)
        return self._plan(shard, rows, self._terms._replace(holders=holders))

    async def _set_waiting(self, shard: Shard, refused: Sequence[Refused]) -> None:
        """These rows are due, and what they need is taken. Only rows of processing_queue wait."""
        arrived = [due for _, due in refused if due.row.queue is Queue.INCOMING]
        for needs, due in refused:
            if due.row.queue is Queue.PROCESSING:
                shard.backlog.waiting.add(needs, due)
        if arrived:
            await self._migrate(shard, arrived, [])

    async def _begin(self, shard: Shard, begins: list[Begin]) -> None:
        """Begin all of them in one write, except that what was interrupted begins again in parts.

        One of those may have killed its worker, and if it does so again, fewer others are in hand.
        """
        parts = _in_parts(begins)
        try:
            while parts:
                await self._begin_together(shard, parts.popleft())
        finally:
            for part in parts:
                self._pool.give_back([begin.attempt for begin in part if begin.attempt is not None], [])

    async def _begin_together(self, shard: Shard, begins: list[Begin]) -> None:
        """Write all begins at once; then execute the attempts that have begun."""
        if not begins:
            return
        done = list[Begin]()
        try:
            advances = [begin.advance for begin in begins]
            outcomes = await shard.writer.advance(advances, shard.lock.valid_until_us)
            done = begins
            if outcomes.count(_DONE) < len(outcomes):
                done = [begin for begin, outcome in zip(begins, outcomes, strict=True) if outcome is _DONE]
        finally:
            attempts = [begin.attempt for begin in done if begin.attempt is not None]
            if len(done) < len(begins):
                self._pool.give_back([begin.attempt for begin in begins if begin.attempt is not None], attempts)
        self._pool.start(attempts)
        interrupted = 0
        for begin in done:
            if begin.decision is not _BEGIN:
                self._note(shard, begin)
                interrupted += begin.decision is Decision.INTERRUPT
        if interrupted:
            self._log.info("attempts were found interrupted", shard=shard.shard_id, attempts=interrupted)

    def _note(self, shard: Shard, begin: Begin) -> None:
        """A row was advanced that did not simply begin."""
        if begin.decision is Decision.INTERRUPT:
            self._tally.found_interrupted += 1
            self._note_if_parked(begin.advance)
        elif begin.decision is Decision.EXPIRE:
            self._tally.expired += 1
        elif begin.decision is Decision.PURGE:
            self._tally.purged += 1
        else:
            self._tally.undecodable += 1
            row = begin.advance.row
            self._log.error("an action cannot be decoded and was set aside", action=row.action_id, guid=row.guid)
        if begin.attempt is None and begin.advance.to_us is not None:
            shard.wrote(begin.advance.to_us)

    def _note_if_parked(self, advance: Advance) -> None:
        if advance.to_us is None or advance.to_us < END_OF_TIME_US or advance.status is None:
            return
        self._tally.parked += 1
        reason = Status.FromString(advance.status).reason
        self._log.error("an action was parked: it kills its workers", action=advance.row.action_id, reason=reason)

    async def _wait_for_next(self, shard: Shard) -> None:
        """Wait for the next row's time, the next read, or a wake-up; or for room, if due rows find none."""
        now_us = self._clock.now_us()
        pause_us = shard.wakes_at_us() - now_us
        waiting = shard.backlog.waiting
        if self._stopping or (waiting and self._pool.has_room(waiting) and waiting.can_begin()):
            return
        if pause_us > 0:
            if await self._wait.wait(self._store.wait(shard.shard_id, seconds(pause_us))):
                shard.read_now()
        elif not shard.has_due(now_us):
            return
        elif self._pool.room == 0:
            await self._wait.wait(self._pool.wait_for_room(seconds(_WAIT_FOR_ROOM_US)))
            shard.waited_for_room_us += self._clock.now_us() - now_us
        elif (pause_us := shard.admission.pause_us(now_us, waiting)) > 0:
            await self._wait.wait(asyncio.sleep(seconds(pause_us)))

    async def _wait_without_shard(self) -> None:
        self._iterations_without_shard += 1
        pause_us = self._lock_backoff.pause_us(self._iterations_without_shard, self._ids.fraction())
        if not self._stopping:
            await self._wait.wait(asyncio.sleep(seconds(pause_us)))

    def _room(self) -> int:
        return min(self._share, self._pool.room)


def _in_parts(begins: list[Begin]) -> deque[list[Begin]]:
    again = [begin for begin in begins if begin.decision is _INTERRUPT and begin.attempt is not None]
    if len(again) <= _AGAIN_TOGETHER:
        return deque([begins])
    parts = deque(again[n : n + _AGAIN_TOGETHER] for n in range(0, len(again), _AGAIN_TOGETHER))
    parts[0] += [begin for begin in begins if begin.decision is not _INTERRUPT or begin.attempt is None]
    return parts
