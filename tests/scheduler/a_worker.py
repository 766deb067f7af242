"""What a worker writes to the store of a desk, one call at a time."""

from clepsydra.core.action.attempt import SUCCESS, Attempt, Result
from clepsydra.core.action.events import Decision
from clepsydra.core.ids import WorkerGuids
from clepsydra.core.lifecycle import end_time_us, plan_begins, plan_ends
from clepsydra.core.plan import BeginTerms
from clepsydra.core.times import MINUTE_US, SECOND_US
from clepsydra.store.port import AdvanceOutcome, Lock, Mark
from clepsydra.worker.attempts.leases import extension_of
from tests.scheduler.desk import Desk

TERMS = BeginTerms("the-worker", 30 * SECOND_US, 5 * SECOND_US, MINUTE_US)


class AWorker:
    _attempt: Attempt

    def __init__(self, desk: Desk, name: str = TERMS.worker) -> None:
        self._desk = desk
        self._name = name
        self._guids = WorkerGuids(desk.ids)
        self._locks: list[Lock] = []

    async def lock(self, shards: int | None = None) -> None:
        """Take the locks that are free, or that many of them."""
        now_us = self._desk.clock.now_us()
        while shards is None or len(self._locks) < shards:
            acquired = await self._desk.store.acquire(self._guids.sync(), self._name, now_us, 0)
            if acquired is None:
                return
            self._locks.append(acquired.lock)

    async def heartbeat(self) -> None:
        await self._desk.store.heartbeat(self._locks, self._desk.clock.now_us(), 0)

    async def begin(self, action_id: str = "a") -> Decision | None:
        """Lock every shard, and advance the row of the action, which is due."""
        await self.lock()
        desk, now_us = self._desk, self._desk.clock.now_us()
        for shard_id in range(desk.store.shards):
            page = await desk.store.due(
                shard_id, incoming_from_us=0, incoming_limit=9, from_us=0, until_us=now_us, limit=9
            )
            for due in (*page.incoming, *page.due):
                if due.action is None or due.row.action_id != action_id or due.row.scheduled_at_us > now_us:
                    continue
                [begin] = plan_begins([due], now_us, TERMS)
                assert await desk.store.advance([begin.advance], self._mark()) == [AdvanceOutcome.DONE]
                if begin.attempt is not None:
                    self._attempt = begin.attempt
                    self._attempt.started_us = now_us
                return begin.decision
        raise AssertionError(f"{action_id} is not due")

    async def extend(self) -> None:
        """Move the row of the attempt to the end of a new lease."""
        now_us = self._desk.clock.now_us()
        advance = extension_of(self._attempt, now_us, TERMS.lease_us, TERMS.grace_us)
        mark = Mark(self._guids.leases, now_us)
        assert await self._desk.store.advance([advance], mark) == [AdvanceOutcome.DONE]

    async def succeed(self) -> AdvanceOutcome:
        return await self.end(SUCCESS)

    async def end(self, result: Result) -> AdvanceOutcome:
        [advance] = plan_ends([(self._attempt, result, 0.5)], end_time_us(self._desk.clock.now_us()))
        [outcome] = await self._desk.store.advance([advance], self._mark())
        return outcome

    def _mark(self) -> Mark:
        return Mark(self._guids.sync(), self._desk.clock.now_us())
