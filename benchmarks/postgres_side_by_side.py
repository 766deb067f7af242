"""`python -m benchmarks.postgres_side_by_side`: do schedulers and workers get into each other's way on PostgreSQL?

In each round creations are measured alone, then workers drain a backlog alone, and then both at once. Where they share
the processors of one machine, both get slower by that alone; what they must not do is wait for each other. So the
server logs every wait for a row that lasts a millisecond, and the waits for actions and queues are told apart from
those for shard locks, which workers have among themselves. Compare the figures of one run.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import grpc

from benchmarks.creates import action, create_in_batches
from benchmarks.installation import Installation
from clepsydra.core.times import HOUR_US, SECOND_US
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.postgres.server import Server, running

SHARDS = 16
_LOGGED = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}
# A wait for a row is logged with the table that the row is in.
_WAIT = re.compile(r'CONTEXT:  while .* in relation "(\w+)"')
_LOOK_S = 0.005

Figures = dict[str, float]


class Bench:
    def __init__(
        self, installation: Installation, address: str, creates_per_s: int, backlog: int, server: Server
    ) -> None:
        self._installation = installation
        self._address = address
        self._creates_per_s = creates_per_s
        self._backlog = backlog
        self._server = server
        self._executed = 0

    async def round(self) -> Figures:
        alone_ms = await self._creations(3.0)
        await self._fill()
        drain_alone = await self._drained()
        await self._fill()
        waits_before = self._waits()
        drains = asyncio.create_task(self._drained())
        beside_ms: list[float] = []
        while not drains.done():
            beside_ms += await self._creations(0.5)
        drain_beside = await drains
        waits = self._waits() - waits_before
        return {
            "create alone, median ms": statistics.median(alone_ms),
            "create alone, 99 % ms": statistics.quantiles(alone_ms, n=100)[-1],
            "create beside workers, median ms": statistics.median(beside_ms),
            "create beside workers, 99 % ms": statistics.quantiles(beside_ms, n=100)[-1],
            "create beside / alone, medians": statistics.median(beside_ms) / statistics.median(alone_ms),
            "drained/s alone": drain_alone,
            "drained/s beside creations": drain_beside,
            "drain beside / alone": drain_beside / drain_alone,
            "waits for actions and rows": waits["scheduled_actions"]
            + waits["incoming_queue"]
            + waits["processing_queue"],
            "waits for shard locks": waits["shard_locks"],
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

    def _waits(self) -> Counter[str]:
        """How often a session has waited for a row so far, by table."""
        return Counter(_WAIT.findall(self._server.log))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.postgres_side_by_side", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backlog", type=int, default=10_000, help="actions to drain in each part (default 10000)")
    parser.add_argument("--creates-per-second", type=int, default=100, help="single creations (default 100)")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    taken: dict[str, list[float]] = defaultdict(list)
    with (
        running(settings=_LOGGED) as server,
        tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder,
        Installation(Path(folder), server.url, SHARDS) as installation,
    ):
        address = installation.scheduler()
        for _ in range(chosen.workers):
            installation.worker()
        bench = Bench(installation, address, chosen.creates_per_second, chosen.backlog, server)
        for _ in range(chosen.rounds):
            for figure, value in asyncio.run(bench.round()).items():
                taken[figure].append(value)
        installation.audit_is_clean()
    for figure, values in taken.items():
        print(f"{figure:42} {statistics.median(values):10,.2f}   ({min(values):,.2f} to {max(values):,.2f})")


if __name__ == "__main__":
    main()
