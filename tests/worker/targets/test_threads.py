"""Handlers in threads: bounded, whatever they do, and never in the way of the worker's end."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from structlog.testing import LogCapture

from clepsydra.core.action.attempt import SUCCESS, Attempt
from clepsydra.v1 import action_pb2
from clepsydra.worker import Context, Registry
from clepsydra.worker.running import RunningAttempt
from clepsydra.worker.targets import Targets
from clepsydra.worker.targets.threads import JobFailed, Threads
from tests.worker.targets.executing import (
    LIMIT_S,
    an_attempt,
    cancelled,
    execute,
    execute_together,
    executing,
    handled_by,
)

# As many as the fixture `settings` allows.
THREADS = 2


class Gate:
    """A handler that waits, in its thread, until it is let go; and the loop's view of it."""

    def __init__(self, registry: Registry) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered = asyncio.Semaphore(0)
        self._left = asyncio.Semaphore(0)
        self._open = threading.Event()
        self.saw_cancelled: list[bool] = []
        self.threads: set[str] = set()
        registry.handler("gate")(self.handle)

    def handle(self, context: Context) -> None:
        self.threads.add(threading.current_thread().name)
        self._loop.call_soon_threadsafe(self._entered.release)
        assert self._open.wait(LIMIT_S), "the test ended without opening the gate"
        self.saw_cancelled.append(context.cancelled)
        self._loop.call_soon_threadsafe(self._left.release)

    async def entered(self, times: int = 1) -> None:
        async with asyncio.timeout(LIMIT_S):
            for _ in range(times):
                await self._entered.acquire()

    async def left(self, times: int = 1) -> None:
        async with asyncio.timeout(LIMIT_S):
            for _ in range(times):
                await self._left.acquire()

    def open(self) -> None:
        self._open.set()


async def succeeding(targets: Targets, name: str) -> None:
    """Execute until it succeeds: a thread is given back a moment after its handler returns."""
    async with asyncio.timeout(LIMIT_S):
        # Nothing outside tells when.
        while await execute(targets, handled_by(name)) != SUCCESS:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_functions_run_beside_the_loop(targets: Targets, registry: Registry) -> None:
    loop_thread = threading.current_thread()
    seen: list[threading.Thread] = []
    registry.handler("it")(lambda: seen.append(threading.current_thread()))
    assert await execute(targets, handled_by("it")) == SUCCESS
    assert seen[0] is not loop_thread
    assert seen[0].daemon


async def test_no_more_run_at_once_than_there_are_threads(targets: Targets, registry: Registry) -> None:
    gate = Gate(registry)
    running = [executing(targets, handled_by("gate")) for _ in range(5)]
    await gate.entered(THREADS)
    gate.open()
    async with asyncio.timeout(LIMIT_S):
        assert await asyncio.gather(*running) == [(SUCCESS,)] * 5
    assert len(gate.threads) <= THREADS


async def test_a_cancelled_function_sees_it_and_gives_its_thread_back(
    targets: Targets, registry: Registry, lines: LogCapture
) -> None:
    gate = Gate(registry)
    running = [executing(targets, handled_by("gate")) for _ in range(THREADS)]
    await gate.entered(THREADS)
    for one in running:
        assert await cancelled(one)
    gate.open()
    await gate.left(THREADS)
    assert gate.saw_cancelled == [True] * THREADS
    assert [line["threads_held"] for line in lines.entries] == [1, 2]
    await succeeding(targets, "gate")
    again = [execute(targets, handled_by("gate")) for _ in range(5)]
    assert await asyncio.gather(*again) == [SUCCESS] * 5
    assert len(gate.threads) <= THREADS


async def test_an_attempt_cancelled_before_its_turn_never_starts(targets: Targets, registry: Registry) -> None:
    gate = Gate(registry)
    running = [executing(targets, handled_by("gate")) for _ in range(THREADS)]
    await gate.entered(THREADS)
    ran: list[bool] = []
    registry.handler("late")(lambda: ran.append(True))
    assert await cancelled(executing(targets, handled_by("late")))
    gate.open()
    assert await asyncio.gather(*running) == [(SUCCESS,)] * THREADS
    registry.handler("after")(lambda: None)
    assert await execute(targets, handled_by("after")) == SUCCESS
    assert ran == []


async def test_when_every_thread_is_held_the_next_is_told_at_once(targets: Targets, registry: Registry) -> None:
    gate = Gate(registry)
    running = [executing(targets, handled_by("gate")) for _ in range(THREADS)]
    await gate.entered(THREADS)
    for one in running:
        assert await cancelled(one)
    registry.handler("quick")(lambda: None)
    result = await execute(targets, handled_by("quick"))
    assert (result.outcome, result.retryable) == (action_pb2.Attempt.FAILURE, True)
    assert "every handler thread of worker worker-7 is held" in result.error
    gate.open()
    await succeeding(targets, "quick")


async def test_idle_threads_end_when_the_pool_is_closed() -> None:
    threads = Threads(limit=3)
    used = await asyncio.gather(*[threads.run(threading.current_thread, on_held=never) for _ in range(3)])
    threads.close()
    for thread in used:
        await asyncio.to_thread(thread.join, LIMIT_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("error", [StopIteration, SystemExit, ValueError])
async def test_a_job_that_raises_after_all_costs_no_thread(error: type[BaseException]) -> None:
    threads = Threads(limit=1)

    def fail() -> None:
        raise error

    for _ in range(3):
        with pytest.raises(JobFailed) as failed:
            await threads.run(fail, on_held=never)
        assert isinstance(failed.value.__cause__, error)
    assert await threads.run(lambda: "fine", on_held=never) == "fine"
    threads.close()


def test_a_thread_outlives_its_loop_without_a_word() -> None:
    used: list[threading.Thread] = []
    proceed = threading.Event()

    async def hold_a_thread() -> None:
        loop, entered, held = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def wait() -> None:
            used.append(threading.current_thread())
            loop.call_soon_threadsafe(entered.set)
            proceed.wait(LIMIT_S)

        running = asyncio.create_task(Threads(limit=1).run(wait, held.set))
        await entered.wait()
        running.cancel()
        await held.wait()

    asyncio.run(hold_a_thread())
    proceed.set()
    used[0].join(LIMIT_S)
    assert not used[0].is_alive()


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
HANGING_WORKER = """
import asyncio, sys, threading
import structlog
from clepsydra.worker import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import executing, handled_by

registry = Registry()
entered = threading.Event()

@registry.handler("hang")
def hang():
    entered.set()
    threading.Event().wait()

async def main():
    targets = Targets(WorkerSettings(), registry, structlog.get_logger())
    await targets.start()
    running = executing(targets, handled_by("hang"))
    await asyncio.to_thread(entered.wait)
    running.cancel()
    await asyncio.wait([running])
    await targets.close()
    sys.stderr.write("closed")

asyncio.run(main())
"""


def test_a_handler_that_never_returns_does_not_keep_the_process() -> None:
    command = [sys.executable, "-c", HANGING_WORKER]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert (ended.returncode, ended.stderr) == (0, "closed")


def never() -> None:
    raise AssertionError("nothing was cancelled")


class Noted(RunningAttempt):
    """Notes in which thread its context is made."""

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt)
        self.made_in: list[threading.Thread] = []

    @property
    def context(self) -> Context:
        if self._context is None:
            self.made_in.append(threading.current_thread())
        return super().context


async def test_a_context_is_made_before_a_thread_could_make_another(targets: Targets, registry: Registry) -> None:
    """Or else the one that a cancellation changes might not be the one that the handler has."""
    seen: list[Context] = []

    @registry.handler("one")
    def one(context: Context) -> None:
        seen.append(context)

    @registry.handler("many", batch=2)
    def many(contexts: list[Context]) -> None:
        seen.extend(contexts)

    alone = Noted(an_attempt(handled_by("one")).attempt)
    together = [Noted(an_attempt(handled_by("many")).attempt) for _ in range(2)]
    for group in ([alone], together):
        assert list(await execute_together(targets, group)) == [SUCCESS] * len(group)
    assert [each.made_in for each in (alone, *together)] == [[threading.current_thread()]] * 3
    assert seen == [each.context for each in (alone, *together)]
