"""`python -m benchmarks.postgres_side_by_side`: do schedulers and workers get into each other's way on PostgreSQL?

In each round creations are measured alone, then workers drain a backlog alone, and then both at once. Where they share
the processors of one machine, both get slower by that alone; what they must not do is wait for each other. So sessions
that wait for a lock are counted too, every few milliseconds, while both are at work. Compare the figures of one run.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import asyncpg
import grpc

from benchmarks.creates import action, create_in_batches
from benchmarks.installation import Installation
from clepsydra.core.moments import HOUR_US, SECOND_US
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.postgres.server import running

SHARDS = 16
_LOOK_S = 0.005

Figures = dict[str, float]


class Bench:
    def __init__(self, installation: Installation, address: str, creates_per_s: int, backlog: int, url: str) -> None:
        self._installation = installation
        self._address = address
        self._creates_per_s = creates_per_s
        self._backlog = backlog
        self._url = url
        self._executed = 0

    async def round(self) -> Figures:
        alone_ms = await self._creations(3.0)
        await self._fill()
        drain_alone = await self._drained()
        await self._fill()
        drains = asyncio.create_task(self._drained())
        waits = asyncio.create_task(self._lock_waits(drains))
        beside_ms: list[float] = []
        while not drains.done():
            beside_ms += await self._creations(0.5)
        drain_beside = await drains
        looks, waiting = await waits
        return {
            "create alone, median ms": statistics.median(alone_ms),
            "create alone, 99 % ms": statistics.quantiles(alone_ms, n=100)[-1],
            "create beside workers, median ms": statistics.median(beside_ms),
            "create beside workers, 99 % ms": statistics.quantiles(beside_ms, n=100)[-1],
            "create beside / alone, medians": statistics.median(beside_ms) / statistics.median(alone_ms),
            "drained/s alone": drain_alone,
            "drained/s beside creations": drain_beside,
            "drain beside / alone": drain_beside / drain_alone,
            "looks for sessions that wait for a lock": looks,
            "sessions found waiting": waiting,
        }

    async def _creations(self, seconds: float) -> list[float]:
        """Single creations at a steady rate, far in the future: how long each took, in ms."""
        taken: list[float] = []
        async with grpc.aio.insecure_channel(self._address) as channel:
            stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
            request = action(time.time_ns() // 1000 + 5 * HOUR_US)

            async def create() -> None:
                started = time.perf_counter()
                await stub.CreateAction(request)
                taken.append(1000 * (time.perf_counter() - started))

            loop, calls = asyncio.get_running_loop(), []
            begins_at = loop.time()
            for n in range(int(seconds * self._creates_per_s)):
                await asyncio.sleep(begins_at + n / self._creates_per_s - loop.time())
                calls.append(asyncio.create_task(create()))
            await asyncio.gather(*calls)
        return taken

    async def _fill(self) -> None:
        """Make a backlog, and wait until it comes due."""
        self._executed = self._installation.executed() + self._backlog
        due_us = time.time_ns() // 1000 + 3 * SECOND_US + self._backlog * 1000
        await create_in_batches(self._address, [due_us] * self._backlog)
        await asyncio.sleep(max(0.0, due_us / SECOND_US - time.time()))

    async def _drained(self) -> float:
        """Actions executed a second until the backlog is gone."""
        started = time.perf_counter()
        while self._installation.executed() < self._executed:  # noqa: ASYNC110 - what happens, happens in others
            await asyncio.sleep(_LOOK_S)
        return self._backlog / (time.perf_counter() - started)

    async def _lock_waits(self, until: "asyncio.Task[float]") -> tuple[int, int]:
        connection = await asyncpg.connect(self._url)
        question = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clepsydra' AND wait_event_type = 'Lock'"
        )
        looks = waiting = 0
        while not until.done():
            waiting += await connection.fetchval(question)
            looks += 1
            await asyncio.sleep(_LOOK_S)
        await connection.close()
        return looks, waiting


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_side_by_side", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backlog", type=int, default=10_000, help="actions to drain in each part (default 10000)")
    parser.add_argument("--creates-per-second", type=int, default=100, help="single creations (default 100)")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    taken: dict[str, list[float]] = defaultdict(list)
    with (
        running(settings={}) as server,
        tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder,
        Installation(Path(folder), server.url, SHARDS) as installation,
    ):
        address = installation.scheduler()
        for _ in range(chosen.workers):
            installation.worker()
        bench = Bench(installation, address, chosen.creates_per_second, chosen.backlog, server.url)
        for _ in range(chosen.rounds):
            for figure, value in asyncio.run(bench.round()).items():
                taken[figure].append(value)
        installation.audit_is_clean()
    for figure, values in taken.items():
        print(f"{figure:42} {statistics.median(values):10,.2f}   ({min(values):,.2f} to {max(values):,.2f})")


if __name__ == "__main__":
    main()
