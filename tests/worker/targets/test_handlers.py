"""What becomes of an attempt, by what its handler does."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import LogCapture

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.core.times import SECOND_US
from clepsydra.v1.action_pb2 import Attempt
from clepsydra.worker import Context, DoNotRetry, Registry, RetryAfter
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import (
    LIMIT_S,
    an_attempt,
    cancelled,
    execute,
    execute_together,
    executing,
    handled_by,
)

Raise = Callable[[Registry, BaseException], None]


def raise_in_coroutine(registry: Registry, error: BaseException) -> None:
    @registry.handler("it")
    async def it() -> None:
        raise error


def raise_in_thread(registry: Registry, error: BaseException) -> None:
    @registry.handler("it")
    def it() -> None:
        raise error


both_kinds = pytest.mark.parametrize("raising", [raise_in_coroutine, raise_in_thread])


async def test_an_unknown_handler_is_retried_because_another_worker_may_know_it(targets: Targets) -> None:
    result = await execute(targets, handled_by("nobody"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert 'no handler named "nobody" is registered on worker worker-7' in result.error
    assert "--handlers" in result.error


@pytest.mark.parametrize("returned", [None, 0, False, "text", object(), ValueError("returned, not raised")])
async def test_whatever_is_returned_is_success(targets: Targets, registry: Registry, returned: object) -> None:
    registry.handler("function")(lambda: returned)

    @registry.handler("coroutine")
    async def coroutine() -> object:
        return returned

    assert await execute(targets, handled_by("function")) == SUCCESS
    assert await execute(targets, handled_by("coroutine")) == SUCCESS


@both_kinds
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad\x00 \ud800 value"), "ValueError: bad\ufffd \ufffd value"),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (asyncio.CancelledError(), "CancelledError"),
    ],
)
async def test_an_exception_is_a_failure_to_be_retried(
    targets: Targets, registry: Registry, raising: Raise, error: BaseException, text: str
) -> None:
    raising(registry, error)
    result = await execute(targets, handled_by("it"))
    assert result == Result(Attempt.FAILURE, text)
    assert result.cause is error


async def test_stop_iteration_ends_neither_thread_nor_attempt(targets: Targets, registry: Registry) -> None:
    raise_in_thread(registry, StopIteration("odd"))
    for _ in range(5):
        result = await execute(targets, handled_by("it"))
        assert result == Result(Attempt.FAILURE, "StopIteration: odd")


@both_kinds
async def test_a_long_text_is_cut(targets: Targets, registry: Registry, raising: Raise) -> None:
    raising(registry, ValueError("x" * 1_000_000))
    result = await execute(targets, handled_by("it"))
    assert len(result.error) == ERROR_TEXT_LENGTH
    assert result.error.endswith("x…")


@both_kinds
async def test_an_exception_that_cannot_be_shown(targets: Targets, registry: Registry, raising: Raise) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    raising(registry, Unspeakable())
    result = await execute(targets, handled_by("it"))
    assert result.error == "Unspeakable: its message cannot be shown (RuntimeError)"


@both_kinds
@pytest.mark.parametrize(
    ("delay", "wait_us"),
    [
        (0, 0),
        (1.5, 1_500_000),
        (timedelta(minutes=2), 120 * SECOND_US),
        (timedelta.max, RETRY_DELAY_MAX_US),
        (float("inf"), RETRY_DELAY_MAX_US),
    ],
)
async def test_retry_after(
    targets: Targets, registry: Registry, raising: Raise, delay: float | timedelta, wait_us: int
) -> None:
    raising(registry, RetryAfter(delay, "the bank is closed"))
    result = await execute(targets, handled_by("it"))
    assert result == Result(Attempt.FAILURE, "the bank is closed", retryable=True, retry_after_us=wait_us)
    assert result.cause is None


def test_retry_after_tells_its_own_reason() -> None:
    assert str(RetryAfter(90)) == "the handler asked to be tried again after 90 s"


@pytest.mark.parametrize("delay", [-1, float("nan"), timedelta(seconds=-1)])
def test_retry_after_takes_no_nonsense(delay: float | timedelta) -> None:
    with pytest.raises(ValueError, match="RetryAfter takes a delay of 0 seconds or more"):
        RetryAfter(delay)


@both_kinds
async def test_do_not_retry(targets: Targets, registry: Registry, raising: Raise) -> None:
    raising(registry, DoNotRetry("no such user"))
    result = await execute(targets, handled_by("it"))
    assert result == Result(Attempt.FAILURE, "no such user", retryable=False)
    assert result.cause is None


async def test_a_function_that_returns_a_coroutine_has_not_run(targets: Targets, registry: Registry) -> None:
    started = []

    async def inner() -> None:
        started.append(True)

    registry.handler("it")(lambda: inner())
    result = await execute(targets, handled_by("it"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert "returned an awaitable" in result.error
    assert started == []


async def test_a_cancelled_coroutine_is_told(targets: Targets, registry: Registry) -> None:
    started, told = asyncio.Event(), asyncio.Event()

    @registry.handler("it")
    async def it() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.set()
            raise

    attempt = an_attempt(handled_by("it"))
    context = attempt.context
    running = executing(targets, handled_by("it"), attempt)
    async with asyncio.timeout(LIMIT_S):
        await started.wait()
        assert await cancelled(running)
    assert told.is_set()
    assert context.cancelled


async def test_a_coroutine_that_fails_while_it_is_cancelled_has_failed(targets: Targets, registry: Registry) -> None:
    started = asyncio.Event()

    @registry.handler("it")
    async def it() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise DoNotRetry("half done")

    running = executing(targets, handled_by("it"))
    async with asyncio.timeout(LIMIT_S):
        await started.wait()
        assert not await cancelled(running)
    assert running.result() == (Result(Attempt.FAILURE, "half done", retryable=False),)


async def test_what_a_coroutine_waited_for_was_cancelled_but_not_the_attempt(
    targets: Targets, registry: Registry
) -> None:
    @registry.handler("it")
    async def it(context: Context) -> None:
        part = asyncio.create_task(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(part.cancel)
        await part

    attempt = an_attempt(handled_by("it"))
    [result] = await execute_together(targets, [attempt])
    assert result == Result(Attempt.FAILURE, "CancelledError")
    assert not attempt.context.cancelled


async def test_a_coroutine_that_is_thrown_away_leaves_quietly(
    targets: Targets, registry: Registry, lines: LogCapture
) -> None:
    @registry.handler("it")
    async def it() -> None:
        await asyncio.Event().wait()

    execution = execute(targets, handled_by("it"))
    execution.send(None)
    execution.close()
    assert inspect.getcoroutinestate(execution) == inspect.CORO_CLOSED
    assert lines.entries == []


async def test_the_context_has_times(targets: Targets, registry: Registry) -> None:
    seen: list[Any] = []

    @registry.handler("it")
    async def it(context: Context) -> None:
        seen.extend([context.occurrence_time, context.scheduled_time, context.deadline])

    await execute(targets, handled_by("it"))
    assert [moment.isoformat() for moment in seen] == [
        "2023-11-14T22:13:20+00:00",
        "2023-11-14T22:13:21.500000+00:00",
        "2023-11-14T22:14:21.500000+00:00",
    ]
