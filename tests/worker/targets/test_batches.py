"""Handlers that take many payloads at once: how they are called, and what becomes of each attempt."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.v1.action_pb2 import Attempt
from clepsydra.worker import Context, DoNotRetry, Registry, RetryAfter
from clepsydra.worker.handlers.registry import BatchHandler, InvalidHandler
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import LIMIT_S, an_attempt, execute_together, handled_by


async def execute(targets: Targets, *payloads: bytes) -> Sequence[Result]:
    """One call of the handler "it" with these payloads."""
    attempts = [an_attempt(handled_by("it", payload), action_id=f"action-{n}") for n, payload in enumerate(payloads)]
    [group] = targets.groups(attempts)
    return await execute_together(targets, group)


@pytest.mark.parametrize("kind", ["coroutine", "thread"])
async def test_it_is_given_all_payloads_and_contexts_and_says_how_each_went(
    targets: Targets, registry: Registry, kind: str
) -> None:
    seen: list[Any] = []

    def outcomes(numbers: list[int], contexts: Sequence[Context]) -> list[Exception | None]:
        seen.append((numbers, [context.action_id for context in contexts]))
        return [None, ValueError("no"), RetryAfter(5, "later"), DoNotRetry("never")]

    if kind == "thread":
        registry.handler("it", batch=10)(outcomes)
    else:

        @registry.handler("it", batch=10)
        async def it(numbers: list[int], contexts: list[Context]) -> list[Exception | None]:
            return outcomes(numbers, contexts)

    done, failed, later, never = await execute(targets, b"1", b"2", b"3", b"4")
    assert seen == [([1, 2, 3, 4], ["action-0", "action-1", "action-2", "action-3"])]
    assert done == SUCCESS
    assert (failed.outcome, failed.error, failed.retryable) == (Attempt.FAILURE, "ValueError: no", True)
    assert (later.error, later.retry_after_us) == ("later", 5_000_000)
    assert (never.error, never.retryable) == ("never", False)


async def test_nothing_returned_means_that_all_went_well(targets: Targets, registry: Registry) -> None:
    @registry.handler("it", batch=10)
    async def it(payloads: list[bytes]) -> None: ...

    assert await execute(targets, b"a", b"b") == [SUCCESS, SUCCESS]


async def test_what_it_raises_is_a_failure_of_all(targets: Targets, registry: Registry) -> None:
    @registry.handler("it", batch=10)
    async def it(payloads: list[bytes]) -> None:
        raise SystemExit("not the worker's end")

    first, second = await execute(targets, b"a", b"b")
    assert first == second
    assert first.error == "SystemExit: not the worker's end"


async def test_a_payload_that_cannot_be_decoded_fails_by_itself(targets: Targets, registry: Registry) -> None:
    seen: list[list[int]] = []

    @registry.handler("it", batch=10)
    async def it(numbers: list[int]) -> list[Exception | None]:
        seen.append(numbers)
        return [ValueError(str(number)) for number in numbers]

    first, wrong, last = await execute(targets, b"1", b"one", b"3")
    assert seen == [[1, 3]]
    assert (first.error, last.error) == ("ValueError: 1", "ValueError: 3")
    assert not wrong.retryable
    assert "cannot be decoded" in wrong.error
    assert [result.retryable for result in await execute(targets, b"x")] == [False]
    assert len(seen) == 1, "with nothing to do it is not called"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([None], "for 2 payloads it returned a list of 1"),
        (True, "for 2 payloads it returned a bool"),
        ("no", "must return None or an exception for each payload, and returned a str"),
        ([None, "failed"], "must return None or an exception for each payload, and returned a str"),
    ],
)
async def test_an_answer_that_says_nothing_of_each_is_a_failure_with_a_sentence(
    targets: Targets, registry: Registry, returned: Any, said: str
) -> None:
    @registry.handler("it", batch=10)
    async def it(payloads: list[bytes]) -> Any:
        return returned

    result = (await execute(targets, b"a", b"b"))[-1]
    assert result.outcome == Attempt.FAILURE
    assert said in result.error


async def test_all_are_told_when_their_call_is_cancelled(targets: Targets, registry: Registry) -> None:
    given: list[Context] = []
    started = asyncio.Event()

    @registry.handler("it", batch=10)
    async def it(contexts: list[Context]) -> None:
        given.extend(contexts)
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(execute(targets, b"a", b"b"))
    async with asyncio.timeout(LIMIT_S):
        await started.wait()
    running.cancel()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait([running])
    assert running.cancelled()
    assert [context.cancelled for context in given] == [True, True]


@pytest.mark.parametrize("batch", [0, -1, True, "many", 1.5])
def test_a_batch_is_a_number_from_one_on(batch: Any) -> None:
    with pytest.raises(InvalidHandler, match="a number from 1 on"):
        Registry().handler("it", batch=batch)


def test_what_takes_no_list_is_refused_with_what_to_write() -> None:
    def one(payload: int) -> None: ...

    def nothing() -> None: ...

    with pytest.raises(InvalidHandler, match=r"`payload` takes a list: write list\[int\]"):
        Registry().handler("it", batch=2)(one)
    with pytest.raises(InvalidHandler, match="a list of payloads, a list of contexts, or both"):
        Registry().handler("it", batch=2)(nothing)


def test_lists_are_recognised_in_every_form() -> None:
    registry = Registry()

    def unannotated(payloads) -> None: ...  # type: ignore[no-untyped-def]

    def bare(payloads: list) -> None: ...  # type: ignore[type-arg]

    def swapped(contexts: Sequence[Context], payloads: Sequence[str]) -> None: ...

    for function in (unannotated, bare, swapped):
        registry.handler(function.__name__, batch=2)(function)
    assert all(isinstance(registry.handlers[name], BatchHandler) for name in registry.names())
