"""procrastinate: settings are its worker's, `pool` (connections), and `retry_stalled_s`.

`retry_stalled_s` adds the periodic task that its documentation gives for the jobs of dead workers; it does not look
for them by itself.
"""

import logging
from typing import Any

import procrastinate

from benchmarks.peers.drivers.job import run_async
from benchmarks.peers.drivers.protocol import AsyncDriver, Job, main, ready
from benchmarks.peers.drivers.times import moment

_OURS = ("batch", "batches_in_flight", "pool", "retry_stalled_s", "uvloop")


class Procrastinate(AsyncDriver):
    async def install(self) -> None:
        async with self._app().open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        self._opened = self._app()
        await self._opened.open_async()

    async def close(self) -> None:
        await self._opened.close_async()

    async def create_one(self, job: Job) -> None:
        task = self._opened.tasks["job"]
        await task.configure(schedule_at=moment(job.at_us)).defer_async(n=job.number, at=job.at_us)

    async def create_many(self, jobs: list[Job]) -> None:
        """`batch_defer` gives all of them the same time, so this is what it stands on."""
        task = self._opened.tasks["job"]
        deferred = [
            task.configure(schedule_at=moment(job.at_us)).job.evolve(task_kwargs={"n": job.number, "at": job.at_us})
            for job in jobs
        ]
        await self._opened.job_manager.batch_defer_jobs_async(jobs=deferred)

    async def work(self) -> None:
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        settings = {name: value for name, value in self.settings.items() if name not in _OURS}
        async with self._app().open_async() as app:
            if "retry_stalled_s" in self.settings:
                _retry_stalled_jobs(app, self.settings["retry_stalled_s"])
            ready()
            await app.run_worker_async(**settings)

    def _app(self) -> Any:
        connector = procrastinate.PsycopgConnector(conninfo=self.request.store, max_size=self.settings.get("pool", 10))
        app = procrastinate.App(connector=connector)
        app.task(_job, name="job")
        return app


async def _job(n: int, at: int) -> None:
    await run_async(n, at)


def _retry_stalled_jobs(app: Any, every_s: int) -> None:
    async def retry_stalled_jobs(_context: Any, timestamp: int) -> None:
        del timestamp
        for job in await app.job_manager.get_stalled_jobs():
            await app.job_manager.retry_job(job)

    task = app.task(
        retry_stalled_jobs, name="retry_stalled_jobs", queueing_lock="retry_stalled_jobs", pass_context=True
    )
    app.periodic(cron=f"* * * * * */{every_s}")(task)


if __name__ == "__main__":
    main(Procrastinate)
