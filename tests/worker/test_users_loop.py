"""Users' coroutines in a loop and thread of their own: one that blocks its loop stops nothing of the engine's work."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
import uvloop
from structlog.testing import LogCapture

from clepsydra.core.action.creation import new_action
from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, duration
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import LogLine, PythonHandler, RetryPolicy, ScheduledAction, Spec, Status
from clepsydra.worker import Context, Registry
from clepsydra.worker.attempts.users_loop import ThreadLoop
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker

LIMIT_S = 30
# Short, so that leases end and are extended while a handler blocks.
SETTINGS = WorkerSettings(lease_ms=400, grace_ms=400, lock_life_ms=400, heartbeat_ms=50, drain_ms=100, loops=2)

both_loops = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


class Scene:
    """One worker on a store in memory, on real time."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.registry = Registry()
        self.lines = LogCapture()
        self._log = structlog.wrap_logger(None, [self.lines], structlog.make_filtering_bound_logger(0))
        self._clock, self._ids = SystemClock(), Ids(random.Random(1))
        self.store = MemoryStore(2, self._clock)
        users = ThreadLoop(new_loop, self._log)
        targets = Targets(SETTINGS, self.registry, self._log)
        self.worker = Worker(self.store, targets, self._clock, self._ids, SETTINGS, "w", self._log, users)
        self.tally = self.worker.tally
        # What a handler blocks its thread with.
        self.gate = threading.Event()

    async def create(self, action_id: str, handler: str | None, timeout_ms: int = 60_000) -> None:
        spec = Spec(retry=RetryPolicy(max_attempts=1), attempt_timeout=duration(timeout_ms * MILLISECOND_US))
        if handler is None:
            spec.log.CopyFrom(LogLine(message="hello"))
        else:
            spec.handler.CopyFrom(PythonHandler(name=handler))
        now_us = self._clock.now_us()
        action = new_action(ScheduledAction(spec=spec), action_id, self._ids.guid(), now_us)
        await self.store.put([Put(None, action, self._ids.shard(2), now_us)])

    def status(self, action_id: str) -> Status:
        return Status.FromString(self.store.actions[action_id].status)

    def row_at_us(self, action_id: str) -> int:
        [at_us] = [row.scheduled_at_us for key, row in self.store.rows.items() if action_id in key]
        return at_us

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    def warnings(self, text: str) -> list[Any]:
        return [line for line in self.lines.entries if text in line["event"]]


@asynccontextmanager
async def working(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> AsyncIterator[Scene]:
    scene = Scene(new_loop)
    running = asyncio.create_task(scene.worker.run())
    try:
        yield scene
    finally:
        scene.gate.set()
        scene.worker.stop()
        async with asyncio.timeout(LIMIT_S):
            await running


def blocks_here(scene: Scene) -> None:
    scene.gate.wait(LIMIT_S)


@both_loops
async def test_a_handler_that_blocks_costs_no_lease_and_is_named(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async with working(new_loop) as scene:
        waiting, may_end = threading.Event(), threading.Event()

        @scene.registry.handler("bystander")
        async def bystander() -> None:
            waiting.set()
            while not may_end.is_set():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

        @scene.registry.handler("blocks")
        async def blocks() -> None:
            blocks_here(scene)

        @scene.registry.handler("function")
        def function() -> None: ...

        await scene.create("bystander", "bystander")
        await scene.until(waiting.is_set)
        await scene.create("culprit", "blocks")
        await scene.until(lambda: bool(scene.warnings("blocks the event loop")))
        # Everything else goes on, for several leases.
        for n in range(5):
            await scene.create(f"line-{n}", None)
            await scene.create(f"call-{n}", "function")
            await scene.until(lambda n=n: scene.tally.succeeded == 2 * n + 2)  # type: ignore[misc]
            extended_us = scene.row_at_us("bystander")
            await scene.until(lambda seen=extended_us: scene.row_at_us("bystander") > seen)  # type: ignore[misc]
        scene.gate.set()
        may_end.set()
        await scene.until(lambda: scene.tally.succeeded == 12)

    [line] = scene.warnings("blocks the event loop")
    assert (line["handler"], line["action_id"]) == ("blocks", "culprit")
    assert line["attempt_id"].startswith(scene.store.actions["culprit"].guid)
    assert "test_users_loop.py:" in line["line"]
    assert line["line"].endswith("in blocks_here")
    assert scene.tally.blocked_loops == 1
    assert scene.warnings("answers again")
    assert (scene.tally.interrupted, scene.tally.found_interrupted, scene.tally.superseded) == (0, 0, 0)
    assert scene.status("bystander").last_attempt.number == 1


@both_loops
async def test_at_the_deadline_the_engine_writes_the_outcome_for_a_blocked_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async with working(new_loop) as scene:
        contexts: list[Context] = []

        @scene.registry.handler("blocks")
        async def blocks(context: Context) -> None:
            contexts.append(context)
            blocks_here(scene)

        await scene.create("culprit", "blocks", timeout_ms=300)
        await scene.until(lambda: scene.tally.failed == 1)
        assert not scene.gate.is_set()
        assert scene.status("culprit").last_attempt.outcome == action_pb2.Attempt.TIMEOUT
        assert contexts[0].cancelled
        assert scene.warnings("keeps a place")


@both_loops
async def test_what_ended_before_the_loop_was_blocked_is_written_and_what_did_not_start_is_taken_back(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async with working(new_loop) as scene:
        called: list[str] = []

        @scene.registry.handler("one")
        async def one(context: Context) -> None:
            called.append(context.action_id)
            if len(called) == 2:
                blocks_here(scene)

        # One batch: created while the worker waits.
        for n in range(4):
            await scene.create(f"a{n}", "one")
        await scene.until(lambda: scene.tally.succeeded + scene.tally.interrupted == 3)
        assert (scene.tally.succeeded, scene.tally.interrupted, len(called)) == (1, 2, 2)
        scene.gate.set()
        await scene.until(lambda: scene.tally.succeeded == 4)
    assert len(called) == 4


@both_loops
async def test_a_task_that_raises_system_exit_ends_neither_the_loop_nor_the_worker(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async with working(new_loop) as scene:

        @scene.registry.handler("exits")
        async def exits() -> None:
            async def inner() -> None:
                raise SystemExit(3)

            await asyncio.gather(inner(), asyncio.sleep(0))

        @scene.registry.handler("calls-back")
        async def calls_back() -> None:
            asyncio.get_running_loop().call_soon(_exit)

        @scene.registry.handler("fine")
        async def fine() -> None:
            await asyncio.sleep(0)

        for n in range(3):
            await scene.create(f"exits-{n}", "exits")
            await scene.create(f"calls-back-{n}", "calls-back")
        await scene.until(lambda: scene.tally.failed + scene.tally.succeeded == 6)
        await scene.create("fine", "fine")
        await scene.until(lambda: scene.tally.succeeded == 4)
    assert scene.tally.failed == 3
    assert scene.status("exits-0").last_attempt.error == "SystemExit: 3"


def _exit() -> None:
    raise SystemExit(1)


@both_loops
async def test_a_coroutine_is_cancelled_at_its_deadline_in_its_own_loop(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async with working(new_loop) as scene:
        threads: set[str] = set()

        @scene.registry.handler("waits")
        async def waits() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                threads.add(threading.current_thread().name)
                raise

        for n in range(10):
            await scene.create(f"a{n}", "waits", timeout_ms=100)
        await scene.until(lambda: scene.tally.failed == 10)
    assert threads == {"clepsydra-users-loop"}
    assert scene.status("a0").last_attempt.outcome == action_pb2.Attempt.TIMEOUT
    assert not scene.warnings("keeps a place")


@both_loops
async def test_a_worker_whose_loop_is_blocked_stops_within_its_drain_limit(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clepsydra.worker.attempts.users_loop._CLOSED_WITHIN_S", 0.01)
    async with working(new_loop) as scene:
        started = threading.Event()

        @scene.registry.handler("blocks")
        async def blocks() -> None:
            started.set()
            blocks_here(scene)

        await scene.create("culprit", "blocks")
        await scene.until(started.is_set)
        scene.worker.stop()
        await scene.until(lambda: bool(scene.warnings("the worker has stopped")))
        assert not scene.gate.is_set()
    assert scene.status("culprit").last_attempt.error == "its worker was stopped"
