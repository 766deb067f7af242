"""huey on SQLite: settings are its consumer's. The file is in WAL mode and synced at every commit."""

import logging
import time
from typing import Any

from huey import SqliteHuey

from benchmarks.peers.drivers.job import run
from benchmarks.peers.drivers.protocol import Job, ThreadDriver, main, ready
from benchmarks.peers.drivers.times import moment

_OURS = ("batch", "batches_in_flight")


class Huey(ThreadDriver):
    def install(self) -> None:
        self.open()

    def open(self) -> None:
        self._huey = SqliteHuey(filename=self.request.store.removeprefix("sqlite:///"), results=False, fsync=True)
        self._task = self._huey.task(name="job")(run)

    def create_one(self, job: Job) -> None:
        """A job of the future is put on the queue all the same; a worker that meets it there schedules it."""
        self._task.schedule(args=(job.number, job.at_us), eta=moment(job.at_us))

    def fill_many(self, jobs: list[Job]) -> None:
        """What `create_one` would have made of them, and a worker of those whose time has not come."""
        now_us = time.time_ns() // 1000
        tasks = [(self._huey.serialize_task(self._task.s(*job, eta=_naive(job))), job) for job in jobs]
        due = [("huey", data, 0) for data, job in tasks if job.at_us <= now_us]
        later = [("huey", data, _naive(job).timestamp()) for data, job in tasks if job.at_us > now_us]
        with self._huey.storage.db(commit=True) as cursor:
            cursor.executemany("insert into task (queue, data, priority) values (?, ?, ?)", due)
            cursor.executemany("insert into schedule (queue, data, timestamp) values (?, ?, ?)", later)

    def work(self) -> None:
        logging.getLogger("huey").setLevel(logging.WARNING)
        self.open()
        settings: dict[str, Any] = {name: value for name, value in self.settings.items() if name not in _OURS}
        consumer = self._huey.create_consumer(graceful_signal="TERM", **settings)
        ready()
        consumer.run()


def _naive(job: Job) -> Any:
    return moment(job.at_us).replace(tzinfo=None)


if __name__ == "__main__":
    main(Huey)
