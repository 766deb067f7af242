"""Executes Python handlers: coroutines in the event loop, functions in threads.

Nothing that a handler does ends its worker: whatever it raises becomes a failure of its attempt. The status is told
the exception in one line; its traceback goes to the worker's log.
"""

import asyncio
import inspect
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.context import Context
from clepsydra.worker.handling import DoNotRetry, Handler, Registry, RetryAfter
from clepsydra.worker.payloads import Undecodable
from clepsydra.worker.result import SUCCESS, Result, described, failure, message_of
from clepsydra.worker.targets.threads import Threads, ThreadsHeld


class HandlerTarget:
    def __init__(self, registry: Registry, threads: Threads, log: FilteringBoundLogger) -> None:
        self._registry = registry
        self._threads = threads
        self._log = log

    async def execute(self, request: PythonHandler, context: Context) -> Result:
        handler = self._registry.get(request.name)
        if handler is None:
            # Another worker may have it: during a deployment, some do and some do not.
            return failure(
                f'no handler named "{request.name}" is registered on worker {context.worker}: start its workers with '
                "--handlers and the module that registers it"
            )
        if not handler.is_async:
            return await self._execute_in_thread(handler, request, context)
        try:
            await handler.call(request.payload, request.content_type, context)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                context.cancelled = True
                raise
            # Something that the handler waited for was cancelled, not the attempt.
            return self._failed(handler, context, error)
        except GeneratorExit:
            raise
        except BaseException as error:  # SystemExit and the like must not end the worker
            return self._failed(handler, context, error)
        return SUCCESS

    async def _execute_in_thread(self, handler: Handler, request: PythonHandler, context: Context) -> Result:
        try:
            return await self._threads.run(
                lambda: self._call(handler, request, context), lambda: self._thread_is_held(handler, context)
            )
        except ThreadsHeld:
            return failure(
                f"every handler thread of worker {context.worker} is held by a handler that outlived its attempt: let "
                "handlers return when context.cancelled is true, or raise handler_threads"
            )

    def _call(self, handler: Handler, request: PythonHandler, context: Context) -> Result:
        """In a thread: the handler from beginning to end. Never raises."""
        try:
            returned = handler.call(request.payload, request.content_type, context)
        except BaseException as error:  # SystemExit would end the thread without a word
            return self._failed(handler, context, error)
        return _misplaced_coroutine(handler, returned) if inspect.isawaitable(returned) else SUCCESS

    def _thread_is_held(self, handler: Handler, context: Context) -> None:
        context.cancelled = True
        self._log.warning(
            "handler outlives its attempt and holds a thread",
            handler=handler.name,
            action_id=context.action_id,
            attempt_id=context.attempt_id,
            threads_held=self._threads.held,
        )

    def _failed(self, handler: Handler, context: Context, error: BaseException) -> Result:
        result = _result_of(error)
        expected = isinstance(error, RetryAfter | DoNotRetry | Undecodable)
        self._log.warning(
            "handler failed",
            handler=handler.name,
            action_id=context.action_id,
            attempt_id=context.attempt_id,
            error=result.error,
            exc_info=None if expected else error,
        )
        return result


def _result_of(error: BaseException) -> Result:
    if isinstance(error, RetryAfter):
        return failure(message_of(error), retry_after_us=error.delay_us)
    if isinstance(error, DoNotRetry):
        return failure(message_of(error), retryable=False)
    if isinstance(error, Undecodable):
        return failure(f"the payload cannot be decoded: {error}", retryable=False)
    return failure(described(error))


def _misplaced_coroutine(handler: Handler, returned: Any) -> Result:
    if inspect.iscoroutine(returned):
        returned.close()
    return failure(
        f"{handler.place} returned an awaitable, but is not a coroutine function, so nothing awaited it: define it "
        "and what decorates it with async def"
    )


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
