"""DBOS: settings are `config` for the process, `queue` for the queue, and `pool`, the connections of its client."""

import signal
import threading
import time
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.peers.drivers.protocol import Job, ThreadDriver, main, ran, ready

_QUEUE = "jobs"


class Dbos(ThreadDriver):
    def install(self) -> None:
        self._launch()
        DBOS.destroy()

    def open(self) -> None:
        self._client = DBOSClient(
            system_database_url=self.request.store, system_database_pool_size=self.settings.get("pool")
        )

    def close(self) -> None:
        self._client.destroy()

    def create_one(self, job: Job) -> None:
        self._client.enqueue(_options(job), job.number, job.at_us)

    def create_many(self, jobs: list[Job]) -> None:
        """It has no call for many, but takes part in a transaction of the application's."""
        with self._client._sys_db.engine.begin() as connection:
            for job in jobs:
                self._client.enqueue_in_transaction(connection, _options(job), job.number, job.at_us)

    def fill_many(self, jobs: list[Job]) -> None:
        """Copies of one row that `create_one` made."""
        self.create_one(jobs[0])
        with self._client._sys_db.engine.begin() as connection:
            connection.execute(sqlalchemy.text(_COPIES), [_values(job) for job in jobs])

    def work(self) -> None:
        stopped = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stopped.set())
        self._launch()
        ready()
        stopped.wait()
        DBOS.destroy(workflow_completion_timeout_sec=0)

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": "benchmark",
            "system_database_url": self.request.store,
            "application_version": "1",
            "log_level": "WARNING",
            **self.settings.get("config", {}),
        }
        DBOS(config=config)
        DBOS.workflow(name="job")(_job)
        DBOS.launch()
        DBOS.register_queue(_QUEUE, on_conflict="always_update", **self.settings.get("queue", {}))


def _job(n: int, at: int) -> None:
    ran(n, at)


def _options(job: Job) -> Any:
    options = {"queue_name": _QUEUE, "workflow_name": "job"}
    delay_s = job.at_us / 1e6 - time.time()
    return {**options, "delay_seconds": delay_s} if delay_s > 0 else options


if __name__ == "__main__":
    main(Dbos)
