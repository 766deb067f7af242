"""Whatever a handler raises is a failure of its attempt: the attempt ends, and its place in the pool is free again.

Every exception that Python itself has is raised, by every kind of handler, in a pool of two places.
"""

import asyncio
import builtins
import random
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from clepsydra.core.action.creation import new_action
from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import PythonHandler, RetryPolicy, ScheduledAction, Spec, Status
from clepsydra.worker import Registry
from clepsydra.worker.attempts.users_loop import SameLoop, ThreadLoop, UsersLoop
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker
from tests.worker.fleet import SILENT

LIMIT_S = 30
PLACES = 2


class Unspeakable(BaseException):
    def __str__(self) -> str:
        raise KeyboardInterrupt


# For those that cannot be made without arguments.
ARGUMENTS: dict[type[BaseException], tuple[Any, ...]] = {
    BaseExceptionGroup: ("several", [GeneratorExit(), SystemExit()]),
    ExceptionGroup: ("several", [ValueError()]),
    UnicodeDecodeError: ("utf-8", b"\xff", 0, 1, "odd"),
    UnicodeEncodeError: ("ascii", "é", 0, 1, "odd"),
    UnicodeTranslateError: ("é", 0, 1, "odd"),
}

KINDS = [each for each in vars(builtins).values() if isinstance(each, type) and issubclass(each, BaseException)] + [
    asyncio.CancelledError,
    asyncio.InvalidStateError,
    Unspeakable,
]
ERRORS = {kind.__name__: kind for kind in KINDS}


def an_error(name: bytes) -> BaseException:
    kind = ERRORS[name.decode()]
    return kind(*ARGUMENTS.get(kind, ()))


def in_coroutine(registry: Registry) -> None:
    @registry.handler("raises")
    async def raises(name: bytes) -> None:
        raise an_error(name)


def in_waiting_coroutine(registry: Registry) -> None:
    @registry.handler("raises")
    async def raises(name: bytes) -> None:
        await asyncio.sleep(0)
        raise an_error(name)


def in_function(registry: Registry) -> None:
    @registry.handler("raises")
    def raises(name: bytes) -> None:
        raise an_error(name)


def in_batch_coroutine(registry: Registry) -> None:
    @registry.handler("raises", batch=2)
    async def raises(names: list[bytes]) -> None:
        raise an_error(names[0])


def in_batch_function(registry: Registry) -> None:
    @registry.handler("raises", batch=2)
    def raises(names: list[bytes]) -> None:
        raise an_error(names[0])


def as_entries_of_batch(registry: Registry) -> None:
    @registry.handler("raises", batch=2)
    async def raises(names: list[bytes]) -> list[BaseException]:
        return [an_error(name) for name in names]


@pytest.mark.parametrize(
    "register",
    [in_coroutine, in_waiting_coroutine, in_function, in_batch_coroutine, in_batch_function, as_entries_of_batch],
)
@pytest.mark.parametrize("users", [SameLoop, lambda: ThreadLoop(uvloop.new_event_loop, SILENT)], ids=["same", "apart"])
async def test_everything_that_python_has_is_a_failure_of_the_attempt(
    users: Callable[[], UsersLoop], register: Callable[[Registry], None]
) -> None:
    registry = Registry()
    register(registry)

    @registry.handler("fine")
    async def fine() -> None: ...

    clock, ids = SystemClock(), Ids(random.Random(1))
    store = MemoryStore(1, clock)
    settings = WorkerSettings(loops=1, attempts=PLACES, handler_threads=PLACES)
    worker = Worker(store, Targets(settings, registry, SILENT), clock, ids, settings, "w", SILENT, users())
    now_us = clock.now_us()
    for name in ERRORS:
        target = PythonHandler(name="raises", payload=name.encode())
        spec = Spec(retry=RetryPolicy(max_attempts=1), handler=target)
        await store.put([Put(None, new_action(ScheduledAction(spec=spec), name, ids.guid(), now_us), 0, now_us)])
        spec = Spec(handler=PythonHandler(name="fine"))
        action = new_action(ScheduledAction(spec=spec), f"after-{name}", ids.guid(), now_us)
        await store.put([Put(None, action, 0, now_us)])
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(LIMIT_S):
        while worker.tally.failed + worker.tally.succeeded < 2 * len(ERRORS):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    worker.stop()
    await running

    assert (worker.tally.failed, worker.tally.succeeded) == (len(ERRORS), len(ERRORS))
    for name in ERRORS:
        status = Status.FromString(store.actions[name].status)
        assert (status.state, status.last_attempt.outcome) == (action_pb2.FAILED, action_pb2.Attempt.FAILURE)
        if register is in_function:
            assert name in status.last_attempt.error
