"""pgqueuer: settings are those of its `run`, `pool` (connections) and `least_poll_s`, its pause between two looks."""

import asyncio
import json
import signal
import time
from datetime import timedelta
from typing import Any

import asyncpg
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job as Queued
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from benchmarks.peers.drivers.job import run_async
from benchmarks.peers.drivers.protocol import AsyncDriver, Job, main, payload_of, ready
from benchmarks.peers.drivers.times import microseconds

_OURS = ("batch", "batches_in_flight", "pool", "least_poll_s", "uvloop")


class PgQueuer(AsyncDriver):
    async def install(self) -> None:
        await self.open()
        await self._queries.install()
        await self.close()

    async def open(self) -> None:
        self._pool = await asyncpg.create_pool(self.request.store, min_size=2, max_size=self.settings.get("pool", 10))
        self._queries = Queries(AsyncpgPoolDriver(self._pool))

    async def close(self) -> None:
        await self._pool.close()

    async def create_one(self, job: Job) -> None:
        await self._queries.enqueue("job", payload_of(job), execute_after=_delay(job))

    async def create_many(self, jobs: list[Job]) -> None:
        await self._queries.enqueue(
            ["job"] * len(jobs),
            [payload_of(job) for job in jobs],
            [0] * len(jobs),
            [_delay(job) for job in jobs],
        )

    async def work(self) -> None:
        await self.open()
        manager = QueueManager(self._queries)
        settings: dict[str, Any] = {name: value for name, value in self.settings.items() if name not in _OURS}
        if "least_poll_s" in self.settings:
            manager.min_dequeue_poll_interval = timedelta(seconds=self.settings["least_poll_s"])
        for name in ("dequeue_timeout", "heartbeat_timeout"):
            if name in settings:
                settings[name] = timedelta(seconds=settings[name])
        manager.entrypoint("job")(_job)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
        ready()
        await manager.run(**settings)


def _delay(job: Job) -> timedelta:
    """It takes no times, only delays, which the server counts from its own now."""
    return timedelta(microseconds=max(0, job.at_us - time.time_ns() // 1000))


async def _job(job: Queued) -> None:
    """The planned time is what it made of the delay, so that nothing of the way there counts as lateness."""
    await run_async(json.loads(job.payload or b"")["n"], microseconds(job.execute_after))


if __name__ == "__main__":
    main(PgQueuer)
