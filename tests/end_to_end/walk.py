"""Follows one HTTP action on SQLite through the code, from the call to its purge, and finds the functions on its way.

The rule, which docs/contributing.md states too. A function is a step of the walk if

- another file, the event loop or a thread calls it: what only its own file calls is read with that file;
- it calls a further function of the product: one that does not is a detail of its caller;
- it is not a property, and not in a file of `VALUES`, of `DUTIES` or of the fast path;
- it is not called without an action too; the table still lists those that carry an action.

A function within a function counts as the outer one, and its calls as calls of the outer one.
"""

import asyncio
import functools
import inspect
import logging
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import apsw
import grpc
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import SECOND_US, duration
from clepsydra.scheduler.api.server import serve
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.sqlite import SqliteStore
from clepsydra.v1.action_pb2 import HttpRequest, Meta, Retention, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from clepsydra.worker.handlers.registry import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "scheduler", "store", "worker")

# Times, ids, clocks, encodings, statements, counters: what they do is said by their names.
VALUES = (
    "core/clepsydra/core/backoff.py",
    "core/clepsydra/core/clock.py",
    "core/clepsydra/core/encoding.py",
    "core/clepsydra/core/ids.py",
    "core/clepsydra/core/tables.py",
    "core/clepsydra/core/times.py",
    "store/clepsydra/store/statements.py",
    "worker/clepsydra/worker/capacity.py",
)
# What goes on all the time, whether there is an action or not.
DUTIES = (
    "scheduler/clepsydra/scheduler/api/connections.py",
    "scheduler/clepsydra/scheduler/api/reception.py",
    "store/clepsydra/store/sqlite/connection/checkpoint.py",
    "store/clepsydra/store/sqlite/connection/files.py",
    "store/clepsydra/store/sqlite/connection/log_watch.py",
    "store/clepsydra/store/sqlite/lock.py",
    "store/clepsydra/store/sqlite/wakeup.py",
    "store/clepsydra/store/wakeup.py",
    "worker/clepsydra/worker/attempts/leases.py",
    "worker/clepsydra/worker/loop/heartbeat.py",
    "worker/clepsydra/worker/loop/stale_rows.py",
)
# A loop that waits for a wake-up has called what it calls without an action.
_WAIT = "SqliteStore.wait"
_FASTPATH = "core/clepsydra/core/fastpath/"


class Function(NamedTuple):
    file: str
    name: str


class Calls:
    """Who called whom, in all threads, while `is_recording`; and who was called before that."""

    def __init__(self) -> None:
        self.is_watching = True
        self.is_recording = False
        self.before: set[Function] = set()
        self.callers: dict[Function, set[Function | None]] = defaultdict(set)
        self.callees: dict[Function, set[Function]] = defaultdict(set)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """For this thread, and for threads that start in here."""
        before = sys.getprofile()
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(before)

    def _called(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not self.is_watching or (called := _function(frame)) is None:
            return
        if not self.is_recording:
            self.before.add(called)
            return
        caller = None if frame.f_back is None else _function(frame.f_back)
        callers = self.callers[called]
        if "<locals>" in frame.f_code.co_qualname:
            return
        callers.add(caller)
        if caller is not None and caller != called:
            self.callees[caller].add(called)

    async def until_called(self, name: str) -> None:
        while not any(function.name == name for function in tuple(self.before)):  # noqa: ASYNC110 - it is not told
            await asyncio.sleep(0.01)

    def steps(self) -> set[Function]:
        """What the action caused, by the rule."""
        caused = self.callers.keys() - self.before
        return {function for function in caused if _may_be_step(function) and self._is_step(function)}

    def _is_step(self, function: Function) -> bool:
        not_counted = (function.file, *DUTIES)
        is_entered = any(caller is None or caller.file not in not_counted for caller in self.callers[function])
        return is_entered and any(callee.file not in VALUES for callee in self.callees[function])


@functools.cache
def _function_of(filename: str, qualified_name: str) -> Function | None:
    if not filename.startswith(f"{ROOT}/"):
        return None
    file = filename[len(f"{ROOT}/") :]
    if file.split("/")[0] not in ROOMS:
        return None
    return Function(file, qualified_name.partition(".<locals>")[0])


def _function(frame: FrameType) -> Function | None:
    return _function_of(frame.f_code.co_filename, frame.f_code.co_qualname)


def _may_be_step(function: Function) -> bool:
    if function.file in (*VALUES, *DUTIES) or function.file.startswith(_FASTPATH):
        return False
    name = function.name.rpartition(".")[2]
    if name.startswith(("<", "__")) and name != "__call__":
        return False
    return not isinstance(defined(function), property | functools.cached_property)


def defined(function: Function) -> Any:
    """What the file defines under this name. Raises if there is none."""
    module = function.file.partition("/")[2].removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    found: Any = import_module(module)
    for name in function.name.split("."):
        found = inspect.getattr_static(found, name)
    return found


async def walk_of_an_action() -> Calls:
    """Create an action through gRPC, let a worker execute it, and wait until it is purged."""
    calls = Calls()
    clock, ids, settings = SystemClock(), Ids.from_system(), SchedulerSettings(listen="127.0.0.1:0")
    app = web.Application()
    app.router.add_get("/", _answer)
    with tempfile.TemporaryDirectory() as folder, calls.watching():
        path = f"{folder}/store.db"
        await SqliteStore.install(path, 1)
        store = await SqliteStore.open(path, clock)
        server = await serve(Scheduler(store, clock, ids, settings), settings)
        worker_settings, log = WorkerSettings(), _quiet_log()
        worker = Worker(store, Targets(worker_settings, Registry(), log), clock, ids, worker_settings, "walk", log)
        running = asyncio.ensure_future(worker.run())
        await calls.until_called(_WAIT)
        async with TestServer(app, host="127.0.0.1") as target, grpc.aio.insecure_channel(server.address) as channel:
            calls.is_recording = True
            stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
            await stub.CreateAction(_request(str(target.make_url("/"))))
            async with asyncio.timeout(60):
                await _until(path, "SELECT count(*) FROM scheduled_actions")
            calls.is_watching = False
            worker.stop()
            await running
        await server.stop(0)
        await store.close()
    return calls


async def _until(path: str, count: str) -> None:
    """Until the count is 0. It is asked beside the store, whose functions are recorded."""
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    while connection.execute(count).get:  # noqa: ASYNC110 - another thread writes
        await asyncio.sleep(0.01)
    connection.close()


def _quiet_log() -> FilteringBoundLogger:
    log: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(), wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR)
    )
    return log


async def _answer(_request: web.Request) -> web.Response:
    return web.Response()


def _request(url: str) -> CreateActionRequest:
    # Not due at once, so that its row waits in both queues.
    spec = Spec(
        schedule=Schedule(delay=duration(SECOND_US // 2)),
        http=HttpRequest(url=url),
        retention=Retention(after_success=duration(SECOND_US // 10)),
    )
    return CreateActionRequest(action=ScheduledAction(meta=Meta(id="walk"), spec=spec))
