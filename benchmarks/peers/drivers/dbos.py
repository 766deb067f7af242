"""DBOS: settings are `config` for the process, `queue` for the queue, and `pool`, the connections of its client."""

import signal
import threading
import time
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.peers.drivers.job import run
from benchmarks.peers.drivers.protocol import Job, ThreadDriver, main, ready

_QUEUE = "jobs"
_COLUMNS = ("workflow_uuid", "status", "name", "queue_name", "priority", "serialization", "delay_until_epoch_ms")


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
        """The rows that `create_one` would have made, copied into its tables."""
        made = [self._client._build_enqueue_status(_options(job), job.number, job.at_us)[1] for job in jobs]
        now_ms = time.time_ns() // 1_000_000
        connection = self._client._sys_db.engine.raw_connection()
        try:
            with connection.cursor() as cursor:
                with cursor.copy(
                    f"COPY dbos.workflow_status ({', '.join(_COLUMNS)}, created_at, recovery_attempts) FROM STDIN"
                ) as copy:
                    for status in made:
                        copy.write_row((*(status[column] for column in _COLUMNS), now_ms, 0))
                with cursor.copy(
                    "COPY dbos.workflow_input (workflow_uuid, inputs, retention_timestamp) FROM STDIN"
                ) as copy:
                    for status in made:
                        copy.write_row((status["workflow_uuid"], status["inputs"], now_ms))
            connection.commit()
        finally:
            connection.close()

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
            "executor_id": self.request.name or "installer",
            "log_level": "WARNING",
            **self.settings.get("config", {}),
        }
        DBOS(config=config)
        DBOS.workflow(name="job")(_job)
        DBOS.launch()
        DBOS.register_queue(_QUEUE, on_conflict="always_update", **self.settings.get("queue", {}))


def _job(n: int, at: int) -> None:
    run(n, at)


def _options(job: Job) -> Any:
    options = {"queue_name": _QUEUE, "workflow_name": "job"}
    delay_s = job.at_us / 1e6 - time.time()
    return {**options, "delay_seconds": delay_s} if delay_s > 0 else options


if __name__ == "__main__":
    main(Dbos)
