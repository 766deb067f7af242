"""What every driver in Python has in common: how it is asked, how it creates, how it notes that a job ran.

A driver is run as `driver COMMAND REQUEST`, the request in JSON, and answers with one line of JSON:

    install   make the tool's tables in an empty store
    create    create jobs as an application would, timed: one by one, 64 in flight, or in bulk
    fill      create jobs in whatever way is fastest, not timed
    settle    bring a store that was filled to rest, as it would be after a while
    work      print "ready", then execute jobs until SIGTERM
    check     look whether the store is sound, if the tool can tell
"""

import asyncio
import json
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

IN_FLIGHT = 64


class Job(NamedTuple):
    number: int
    # Microseconds UTC, on a whole millisecond: not every tool knows finer ones.
    at_us: int


class Request:
    """What the harness asks for."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.store: str = asked["store"]
        self.settings: dict[str, Any] = asked.get("settings", {})
        # A worker's name: another has it only if it takes its place.
        self.name: str = asked.get("name", "")
        self.mode: str = asked.get("mode", "bulk")
        self.count: int = asked.get("count", 0)
        # Creating ends with the last job, or after this long.
        self.seconds: float = asked.get("seconds", 3600.0)
        self._first_number: int = asked.get("first_number", 0)
        # The first job is planned for so long after creating begins, or before; the others follow in steps.
        self._lead_ms: int = asked.get("lead_ms", 0)
        self._step_us: int = asked.get("step_us", 0)

    def first_us(self) -> int:
        """When the first job is due, if creating begins now."""
        return (time.time_ns() // 1_000_000 + self._lead_ms) * 1000

    def jobs(self, first_us: int) -> Iterator[Job]:
        for n in range(self.count):
            yield Job(self._first_number + n, first_us + n * self._step_us)


def payload_of(job: Job) -> bytes:
    """In JSON, for tools that take bytes and leave it to the application what they are."""
    return b'{"n": %d, "at": %d}' % job


def ready() -> None:
    print("ready", flush=True)


class _Stopwatch:
    """Jobs of a request, for as long as there is time; the creators share it."""

    def __init__(self, request: Request) -> None:
        self._first_us = request.first_us()
        self._jobs = request.jobs(self._first_us)
        self._taking = threading.Lock()
        self._started = time.perf_counter()
        self._ends = self._started + request.seconds
        self.taken = 0

    def take(self, most: int) -> list[Job]:
        with self._taking:
            if time.perf_counter() >= self._ends:
                return []
            jobs = list(islice(self._jobs, most))
            self.taken += len(jobs)
            return jobs

    def answer(self) -> dict[str, float]:
        seconds = time.perf_counter() - self._started
        return {"created": self.taken, "seconds": seconds, "first_us": self._first_us}


class Driver(ABC):
    """What differs between the tools; `create_many` and `fill_many` only where a tool has them."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.settings = request.settings

    @abstractmethod
    def answer(self, command: str) -> dict[str, Any]:
        """Do what is asked."""

    def _batches(self) -> tuple[int, int]:
        """How many jobs are created at once in bulk, and how many such batches are in flight."""
        return self.settings.get("batch", 1000), self.settings.get("batches_in_flight", 4)


class AsyncDriver(Driver):
    """For tools that live in an event loop."""

    @abstractmethod
    async def install(self) -> None: ...

    @abstractmethod
    async def open(self) -> None:
        """Be ready to create."""

    async def close(self) -> None:
        return

    @abstractmethod
    async def create_one(self, job: Job) -> None: ...

    @abstractmethod
    async def create_many(self, jobs: list[Job]) -> None: ...

    async def settle(self) -> None:
        return

    async def check(self) -> None:
        return

    @abstractmethod
    async def work(self) -> None: ...

    def answer(self, command: str) -> dict[str, Any]:
        run = asyncio.run
        if self.settings.get("uvloop"):
            import uvloop

            run = uvloop.run
        return run(self._answer(command))

    async def _answer(self, command: str) -> dict[str, Any]:
        if command in ("create", "fill"):
            await self.open()
            try:
                return await self._create()
            finally:
                await self.close()
        await {"install": self.install, "settle": self.settle, "check": self.check, "work": self.work}[command]()
        return {}

    async def _create(self) -> dict[str, Any]:
        batch, creators = {"single": (1, 1), "in flight": (1, IN_FLIGHT)}.get(self.request.mode, self._batches())
        stopwatch = _Stopwatch(self.request)

        async def creator() -> None:
            while jobs := stopwatch.take(batch):
                if self.request.mode == "bulk":
                    await self.create_many(jobs)
                else:
                    await self.create_one(jobs[0])

        async with asyncio.TaskGroup() as group:
            for _ in range(creators):
                group.create_task(creator())
        return stopwatch.answer()


class ThreadDriver(Driver):
    """For tools whose calls block."""

    @abstractmethod
    def install(self) -> None: ...

    @abstractmethod
    def open(self) -> None:
        """Be ready to create."""

    def close(self) -> None:
        return

    @abstractmethod
    def create_one(self, job: Job) -> None: ...

    def create_many(self, jobs: list[Job]) -> None:
        raise NotImplementedError("this tool has no call that creates many jobs")

    @abstractmethod
    def fill_many(self, jobs: list[Job]) -> None: ...

    @abstractmethod
    def work(self) -> None: ...

    def answer(self, command: str) -> dict[str, Any]:
        if command in ("create", "fill"):
            self.open()
            try:
                return self._create(fill=command == "fill")
            finally:
                self.close()
        {"install": self.install, "settle": _nothing, "check": _nothing, "work": self.work}[command]()
        return {}

    def _create(self, *, fill: bool) -> dict[str, Any]:
        batch, creators = {"single": (1, 1), "in flight": (1, IN_FLIGHT)}.get(self.request.mode, self._batches())
        create = (lambda jobs: self.create_one(jobs[0])) if self.request.mode != "bulk" else self.create_many
        if fill:
            batch, creators, create = 10_000, 1, self.fill_many
        stopwatch = _Stopwatch(self.request)
        failed: list[BaseException] = []

        def creator() -> None:
            try:
                while not failed and (jobs := stopwatch.take(batch)):
                    create(jobs)
            except BaseException as error:
                failed.append(error)

        _in_threads(creator, creators)
        if failed:
            raise failed[0]
        return stopwatch.answer()


def _in_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _nothing() -> None:
    return


def main(driver: type[Driver]) -> None:
    command, asked = sys.argv[1:]
    print(json.dumps(driver(Request(json.loads(asked))).answer(command)), flush=True)
