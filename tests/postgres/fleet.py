"""A fleet on one store: schedulers and workers as processes, a client that creates actions, and what became of them."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from clepsydra.core.clock import SystemClock
from clepsydra.store.postgres import PostgresStore
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.end_to_end.processes import Process, Result, address_in, clepsydra
from tests.postgres import fleet_handlers

# `make test-postgres` sets a larger number.
ACTIONS = int(os.environ.get("FLEET_ACTIONS", "4000"))
BATCH = 250

# Short leases, so that attempts that a crash interrupts begin again soon.
_SETTINGS = ["lease_ms=3000", "grace_ms=1000", "lock_life_ms=2000", "heartbeat_ms=500"]


class Fleet:
    def __init__(self, url: str, folder: Path, schedulers: int, workers: int) -> None:
        self.url = url
        self._folder = folder
        self._executions = folder / "executions"
        variables = {"PYTHONPATH": str(Path(__file__).parents[2]), fleet_handlers.FILE: str(self._executions)}
        self.schedulers = [
            Process(["scheduler", "--store", url, "--listen", "127.0.0.1:0"], folder) for _ in range(schedulers)
        ]
        settings = [argument for setting in _SETTINGS for argument in ("--set", f"worker.{setting}")]
        handlers = ["--handlers", fleet_handlers.__name__]
        self.workers = [
            Process(["worker", "--store", url, *handlers, *settings], folder, **variables) for _ in range(workers)
        ]

    def wait_until_ready(self) -> list[str]:
        """Wait until every process has opened the store. Returns the addresses of the schedulers.

        A process that finds no server when it starts gives up. So no test may stop the server before this returns.
        """
        for worker in self.workers:
            worker.wait_for_event("the worker has started")
        return [address_in(scheduler.wait_for_out("listens on")) for scheduler in self.schedulers]

    def executions(self) -> Counter[str]:
        """How often each action was executed."""
        return Counter(line.partition(" ")[0] for line in self._executions.read_text().splitlines())

    def logs(self) -> str:
        return "\n".join(line for process in (*self.schedulers, *self.workers) for line in process.err)

    def audit(self) -> Result:
        return clepsydra("audit", "--store", self.url, folder=self._folder)

    def stop(self) -> None:
        for process in (*self.workers, *self.schedulers):
            code = process.stop()
            assert code == 0, f"a process ended with {code}:\n" + "\n".join(process.err[-20:])

    def kill(self) -> None:
        for process in (*self.workers, *self.schedulers):
            process.kill()


@contextmanager
def fleet(url: str, folder: Path, *, schedulers: int, workers: int) -> Iterator[Fleet]:
    started = Fleet(url, folder, schedulers, workers)
    try:
        yield started
    finally:
        started.kill()


class Client:
    """Creates actions through all schedulers at once, and repeats each creation until it is acknowledged."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses
        self.acknowledged: set[str] = set()
        # The errors of creations that were not acknowledged at once.
        self.refusals: Counter[str] = Counter()
        self._progress = asyncio.Condition()

    async def create(self, count: int) -> None:
        ids = [f"fleet-{n:06}" for n in range(count)]
        batches = [ids[start : start + BATCH] for start in range(0, count, BATCH)]
        shares = [batches[n :: len(self._addresses)] for n in range(len(self._addresses))]
        await asyncio.gather(*(map(self._create, self._addresses, shares)))

    async def wait_for_acknowledged(self, count: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: len(self.acknowledged) >= count)

    async def _create(self, address: str, batches: list[list[str]]) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
            for batch in batches:
                while pending := [action_id for action_id in batch if action_id not in self.acknowledged]:
                    await self._try(stub, pending)

    async def _try(self, stub: SchedulerServiceStub, ids: list[str]) -> None:
        request = BatchCreateActionsRequest(requests=[_creation(action_id) for action_id in ids])
        try:
            response = await stub.BatchCreateActions(request, timeout=60)
        except grpc.aio.AioRpcError as error:
            self.refusals[f"{error.code().name}: {error.details()}"] += 1
            return
        for action_id, result in zip(ids, response.results, strict=True):
            if result.HasField("action"):
                self.acknowledged.add(action_id)
            else:
                self.refusals[result.error.message] += 1
        async with self._progress:
            self._progress.notify_all()


def _creation(action_id: str) -> CreateActionRequest:
    """Due at once; its request id makes it safe to repeat."""
    request = CreateActionRequest(request_id=action_id)
    request.action.meta.id = action_id
    request.action.spec.handler.name = "note"
    return request


async def wait_for_ends(url: str, count: int) -> Counter[tuple[str, int, int]]:
    """Wait until no action is left to be executed. Counts actions by state, runs and accepted successes."""
    store = await PostgresStore.open(url, SystemClock())
    try:
        while True:
            ends: Counter[tuple[str, int, int]] = Counter()
            after: str | None = None
            while page := await store.list_actions(after, 1_000):
                after = page[-1].action_id
                for action in page:
                    status = Status.FromString(action.status)
                    counters = status.counters
                    state = action_pb2.State.Name(status.state)
                    ends[state, int(counters.runs), int(counters.succeeded_attempts)] += 1
            if sum(n for (state, _, _), n in ends.items() if state not in ("SCHEDULED", "RETRYING")) == count:
                return ends
    finally:
        await store.close()
