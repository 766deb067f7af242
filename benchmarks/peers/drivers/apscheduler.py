"""APScheduler 3 with its SQLAlchemy store: settings are `threads`, those that execute jobs.

A SQLite file is put into WAL mode, which is not what SQLAlchemy does by itself, and stays synced at every commit.
"""

import pickle
import signal
import threading
from typing import Any

import sqlalchemy
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from benchmarks.peers.drivers.protocol import Job, ThreadDriver, main, ready
from benchmarks.peers.drivers.times import moment

_JOB = "benchmarks.peers.drivers.job:run"


class APScheduler(ThreadDriver):
    def install(self) -> None:
        if self.request.store.startswith("sqlite:"):
            with sqlalchemy.create_engine(self.request.store).connect() as connection:
                connection.execute(sqlalchemy.text("PRAGMA journal_mode = WAL"))
        self.open()
        self.close()

    def open(self) -> None:
        self._scheduler = self._made()
        self._scheduler.start(paused=True)

    def close(self) -> None:
        self._scheduler.shutdown()

    def create_one(self, job: Job) -> None:
        self._added(job)

    def fill_many(self, jobs: list[Job]) -> None:
        """The rows that `create_one` would have made, in one statement."""
        made = self._added(jobs[0])
        store = self._scheduler._lookup_jobstore("default")
        state = made.__getstate__()
        rows = [_row(store, state, job) for job in jobs]
        made.remove()
        with store.engine.begin() as connection:
            connection.execute(store.jobs_t.insert(), rows)

    def work(self) -> None:
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        scheduler = self._made()
        scheduler.start()
        ready()
        stopped.wait()
        scheduler.shutdown(wait=False)

    def _added(self, job: Job) -> Any:
        # By default a job that is a second late is not run at all.
        return self._scheduler.add_job(
            _JOB, "date", run_date=moment(job.at_us), args=tuple(job), misfire_grace_time=None
        )

    def _made(self) -> Any:
        url = self.request.store.replace("postgresql://", "postgresql+psycopg://")
        return BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=url)},
            executors={"default": ThreadPoolExecutor(self.settings.get("threads", 10))},
            timezone="UTC",
        )


def _row(store: Any, state: dict[str, Any], job: Job) -> dict[str, Any]:
    at = moment(job.at_us)
    own = {**state, "id": f"{job.number:032x}", "args": tuple(job), "trigger": DateTrigger(at), "next_run_time": at}
    return {
        "id": own["id"],
        "next_run_time": at.timestamp(),
        "job_state": pickle.dumps(own, store.pickle_protocol),
    }


if __name__ == "__main__":
    main(APScheduler)
