"""Calls users' functions: coroutines in the event loop, plain functions in threads.

Nothing that a function does ends its worker: whatever it raises becomes a failure of its attempts. The status is told
the exception in one line; its traceback goes to the worker's log.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.worker.context import Known, Told
from clepsydra.worker.handling import BatchHandler, DoNotRetry, Handler, RetryAfter
from clepsydra.worker.payloads import Undecodable
from clepsydra.worker.result import SUCCESS, Result, described, failure, message_of
from clepsydra.worker.targets.threads import Threads, ThreadsHeld

# How a call ended, and what it returned if it ended well.
Returned = tuple[Result, Any]


class Functions:
    def __init__(self, threads: Threads, log: FilteringBoundLogger) -> None:
        self._threads = threads
        self._log = log

    async def call(self, handler: Handler | BatchHandler, call: Callable[[], Any], told: Sequence[Told]) -> Returned:
        """Call a handler's function on behalf of these attempts. Raises nothing but CancelledError.

        `call` decodes the payloads as well, so that what their validators raise or wait for is the handler's.
        """
        if not handler.is_async:
            return await self.call_in_thread(handler, call, told)
        try:
            return SUCCESS, await call()
        except BaseException as error:
            return self.ended_by(error, handler, told), None

    def ended_by(self, error: BaseException, handler: Handler | BatchHandler, told: Sequence[Told]) -> Result:
        """What it means that a coroutine has raised this. Raises it again if the attempts are being cut short."""
        if isinstance(error, GeneratorExit):
            raise error
        # Or else something that the handler waited for was cancelled, not the attempt.
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            _tell(told)
            raise error
        # SystemExit and the like must not end the worker.
        return self.failed(handler, told, error)

    def failed(self, handler: Handler | BatchHandler, told: Sequence[Told], error: BaseException) -> Result:
        """What an exception means for these attempts."""
        result = _result_of(error)
        expected = isinstance(error, RetryAfter | DoNotRetry | Undecodable)
        exc_info = None if expected else error
        self._log.warning("handler failed", handler=handler.name, **_named(told), error=result.error, exc_info=exc_info)
        return result

    async def call_in_thread(
        self, handler: Handler | BatchHandler, call: Callable[[], Any], told: Sequence[Told]
    ) -> Returned:
        # Made now: were it left to the thread, the thread and the event loop might each make one.
        told = [Known(each.context) for each in told]
        try:
            return await self._threads.run(
                lambda: self._call_to_the_end(handler, call, told),
                lambda: self._thread_is_held(handler, told),
            )
        except ThreadsHeld:
            held = failure(
                f"every handler thread of worker {told[0].context.worker} is held by a handler that outlived its "
                "attempt: let handlers return when context.cancelled is true, or raise handler_threads"
            )
            return held, None

    def _call_to_the_end(
        self, handler: Handler | BatchHandler, call: Callable[[], Any], told: Sequence[Told]
    ) -> Returned:
        """In a thread. Never raises."""
        try:
            returned = call()
        except BaseException as error:  # SystemExit would end the thread without a word
            return self.failed(handler, told, error), None
        if inspect.isawaitable(returned):
            return _misplaced_coroutine(handler, returned), None
        return SUCCESS, returned

    def _thread_is_held(self, handler: Handler | BatchHandler, told: Sequence[Told]) -> None:
        _tell(told)
        self._log.warning(
            "handler outlives its attempt and holds a thread",
            handler=handler.name,
            **_named(told),
            threads_held=self._threads.held,
        )


def _tell(told: Sequence[Told]) -> None:
    for each in told:
        each.context.cancelled = True


def _named(told: Sequence[Told]) -> dict[str, str | int]:
    """The attempt, for the log; of many the first, and their number."""
    first = told[0].context
    named: dict[str, str | int] = {"action_id": first.action_id, "attempt_id": first.attempt_id}
    return named if len(told) == 1 else {**named, "attempts": len(told)}


def _result_of(error: BaseException) -> Result:
    if isinstance(error, RetryAfter):
        return failure(message_of(error), retry_after_us=error.delay_us)
    if isinstance(error, DoNotRetry):
        return failure(message_of(error), retryable=False)
    if isinstance(error, Undecodable):
        return failure(f"the payload cannot be decoded: {error}", retryable=False)
    return failure(described(error))


def _misplaced_coroutine(handler: Handler | BatchHandler, returned: Any) -> Result:
    if inspect.iscoroutine(returned):
        returned.close()
    return failure(
        f"{handler.place} returned an awaitable, but is not a coroutine function, so nothing awaited it: define it "
        "and what decorates it with async def"
    )


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
