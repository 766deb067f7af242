"""`python -m benchmarks.postgres_queue_head`: how long a look at a shard takes while its queues are emptied all day.

An hour's traffic is squeezed into minutes: the times that are written run through an hour, while the work is done as
fast as it goes. Beside it a transaction is open from the beginning to the end, so that PostgreSQL may clean up nothing.
Looks are taken from the position that a worker remembers and, as a worker does once a minute, from the beginning.
Compare the figures of one run with each other.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US
from clepsydra.store.port import Action, Advance, Mark, Page, Put, Queue, Row
from clepsydra.store.postgres import PostgresStore
from clepsydra.worker.loop.shard import ReadCursor
from tests.postgres.server import running

SHARDS = 16
STEP_US = 10 * SECOND_US
PART_US = 10 * MINUTE_US
LEASE_US = 35 * SECOND_US
MARGIN_US = 2 * SECOND_US

# As in a small real action.
META, SPEC, STATUS = b"m" * 150, b"s" * 200, b"t" * 80


class Hour:
    """The traffic of an hour, on times that run ahead of the clock."""

    def __init__(self, store: PostgresStore, per_s: int, start_us: int) -> None:
        self._store = store
        self._per_step = per_s * STEP_US // SECOND_US
        self._ids = Ids.from_system()
        self._positions = [(ReadCursor(start_us), ReadCursor(start_us)) for _ in range(SHARDS)]
        self.now_us = start_us
        self.remembered_ms: list[float] = []
        self.from_beginning_ms: list[float] = []

    async def step(self) -> None:
        """Actions come in, are begun when they are due, and finished; each shard is looked at."""
        await self._store.put([self._creation(n) for n in range(self._per_step)])
        self.now_us += STEP_US
        for shard_id in range(SHARDS):
            await self._pass(shard_id)

    async def _pass(self, shard_id: int) -> None:
        incoming, processing = self._positions[shard_id]
        page, took_ms = await self._look(shard_id, incoming.from_us, processing.from_us)
        (self.remembered_ms if processing.from_us else self.from_beginning_ms).append(took_ms)
        came_in = [entry.row for entry in page.incoming]
        await self._store.migrate(came_in, self._mark())
        rows = [row._replace(queue=Queue.PROCESSING, at_us=row.scheduled_at_us) for row in came_in]
        begins = [Advance(row, row.at_us + LEASE_US) for row in rows]
        await self._store.advance(begins, self._mark())
        purge_us = self.now_us + DAY_US
        await self._store.advance([self._finish(row, purge_us) for row in rows], self._mark())
        incoming.drained(self.now_us, self.now_us)
        processing.drained(self.now_us, self.now_us)

    async def _look(self, shard_id: int, incoming_from_us: int, from_us: int) -> tuple[Page, float]:
        """What the shard shows, and how many milliseconds that took."""
        started = time.perf_counter()
        page = await self._store.due(
            shard_id,
            incoming_from_us=incoming_from_us,
            incoming_limit=1_000,
            from_us=from_us,
            until_us=self.now_us + MARGIN_US,
            limit=1_000,
        )
        return page, 1000 * (time.perf_counter() - started)

    def _creation(self, n: int) -> Put:
        created_us = self.now_us + n * STEP_US // self._per_step
        action = Action(self._ids.action_id(created_us), self._ids.guid(), META, SPEC, STATUS, created_us + 1)
        return Put(None, action, self._ids.shard(SHARDS), created_us)

    def _finish(self, row: Row, purge_us: int) -> Advance:
        begun = row._replace(at_us=row.at_us + LEASE_US)
        return Advance(begun, purge_us, row.scheduled_at_us, STATUS, purge_us)

    def _mark(self) -> Mark:
        return Mark(self._ids.guid(), self.now_us)


@asynccontextmanager
async def long_transaction(url: str, is_open: bool) -> AsyncIterator[None]:
    """A snapshot that is held all the while: a dump, a report, a forgotten session."""
    connection = await asyncpg.connect(url)
    if is_open:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.fetch("SELECT count(*) FROM clepsydra.processing_queue")
    yield
    await connection.close()


async def measure(url: str, per_s: int, hours: float, is_open: bool) -> None:
    print(f"{per_s} actions a second in {SHARDS} shards, {'with' if is_open else 'without'} a long transaction")
    print("a look at a shard, in ms:           remembered         from the beginning        dead rows")
    print("until minute                      median    95 %          median    95 %       in the queues")
    await PostgresStore.install(url, SHARDS)
    store = await PostgresStore.open(url, SystemClock())
    try:
        async with long_transaction(url, is_open):
            hour = Hour(store, per_s, await store.now())
            start_us = hour.now_us
            while hour.now_us < start_us + hours * HOUR_US:
                part_us = hour.now_us + PART_US
                while hour.now_us < part_us:
                    await hour.step()
                minute = (hour.now_us - start_us) // MINUTE_US
                print(f"{minute:12} {_figures(hour)} {await _dead_rows(url):>18}", flush=True)
                hour.remembered_ms.clear()
                hour.from_beginning_ms.clear()
        audit = await store.audit(1)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)
    finally:
        await store.close()


def _figures(hour: Hour) -> str:
    remembered, beginning = (
        (statistics.median(taken), statistics.quantiles(taken, n=20)[-1])
        for taken in (hour.remembered_ms, hour.from_beginning_ms)
    )
    return f"{remembered[0]:26.2f} {remembered[1]:7.2f} {beginning[0]:15.2f} {beginning[1]:7.2f}"


async def _dead_rows(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        question = (
            "SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables "
            "WHERE schemaname = 'clepsydra' AND relname LIKE '%queue'"
        )
        return f"{await connection.fetchval(question):,}"
    finally:
        await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_queue_head", description=__doc__)
    parser.add_argument("--per-second", type=int, default=100, help="actions a second (default 100)")
    parser.add_argument("--hours", type=float, default=1.0, help="how much traffic (default 1)")
    parser.add_argument("--without", action="store_true", help="without the long transaction, for comparison")
    chosen = parser.parse_args()
    with running(settings={}) as server:
        asyncio.run(measure(server.url, chosen.per_second, chosen.hours, not chosen.without))


if __name__ == "__main__":
    main()
