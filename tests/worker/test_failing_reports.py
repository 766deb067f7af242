"""Whatever goes wrong around an execution is a failure of its attempt: it ends, and its place is free again.

Here the log cannot be written, so that every report of a failure raises as well; or what a handler returns cannot even
be looked at.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest
import structlog

from clepsydra.core.action.creation import new_action
from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import LogLine, PythonHandler, RetryPolicy, ScheduledAction, Spec, Status
from clepsydra.worker import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker

PLACES = 2
LIMIT_S = 30


def _disk_full(_logger: Any, _method: str, _event: Any) -> NoReturn:
    raise OSError(28, "No space left on device")


def _disk_full_of_attempts(_logger: Any, _method: str, event: Any) -> Any:
    if event["event"].startswith("an attempt"):
        raise OSError(28, "No space left on device")
    raise structlog.DropEvent


BROKEN_LOG = structlog.wrap_logger(None, [_disk_full], structlog.make_filtering_bound_logger(0))
LOG_WITHOUT_ATTEMPTS = structlog.wrap_logger(None, [_disk_full_of_attempts], structlog.make_filtering_bound_logger(0))


class Unreadable(Sequence[None]):
    def __len__(self) -> int:
        raise ValueError("no length")

    def __getitem__(self, index: Any) -> Any:
        raise IndexError


def _handlers() -> Registry:
    registry = Registry()

    @registry.handler("function")
    def function() -> None:
        raise ValueError

    @registry.handler("coroutine")
    async def coroutine() -> None:
        raise ValueError

    @registry.handler("batch", batch=10)
    async def batch(payloads: list[bytes]) -> list[Exception]:
        return [ValueError() for _ in payloads]

    @registry.handler("unreadable", batch=10)
    async def unreadable(payloads: list[bytes]) -> Any:
        return Unreadable()

    @registry.handler("fine")
    async def fine() -> None: ...

    return registry


async def _create(store: MemoryStore, ids: Ids, action_id: str, spec: Spec) -> None:
    now_us = SystemClock().now_us()
    action = new_action(ScheduledAction(spec=spec), action_id, ids.guid(), now_us)
    await store.put([Put(None, action, 0, now_us)])


@pytest.mark.parametrize("kind", ["log", "function", "coroutine", "batch", "unreadable"])
async def test_the_attempt_fails_and_gives_its_place_back(kind: str) -> None:
    clock, ids = SystemClock(), Ids(random.Random(1))
    store = MemoryStore(1, clock)
    settings = WorkerSettings(loops=1, attempts=PLACES, handler_threads=PLACES)
    worker = Worker(store, Targets(settings, _handlers(), BROKEN_LOG), clock, ids, settings, "w", LOG_WITHOUT_ATTEMPTS)
    spec = Spec(retry=RetryPolicy(max_attempts=1), handler=PythonHandler(name=kind))
    if kind == "log":
        spec.log.CopyFrom(LogLine(message="hello"))
    # More than there are places.
    for n in range(3 * PLACES):
        await _create(store, ids, f"broken-{n}", spec)
        await _create(store, ids, f"fine-{n}", Spec(handler=PythonHandler(name="fine")))
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(LIMIT_S):
        while worker.tally.failed + worker.tally.succeeded < 6 * PLACES:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    worker.stop()
    await running

    assert (worker.tally.failed, worker.tally.succeeded) == (3 * PLACES, 3 * PLACES)
    status = Status.FromString(store.actions["broken-0"].status)
    assert status.state == action_pb2.FAILED
    defect = "the worker failed to execute the action: "
    assert status.last_attempt.error.startswith(defect if kind in ("log", "unreadable") else "ValueError")
