"""Executes Python handlers: coroutines in the event loop, plain functions in threads, one payload or many at once.

Nothing that a handler does ends its worker: whatever it raises becomes a failure of its attempts. The status holds the
exception in one line; its traceback goes to the log, with the line of the attempt.

A handler that takes many payloads returns one entry for each, in their order: None for a success, an exception for a
failure. Returning None means that all have succeeded, raising means that all have failed. A payload that cannot be
decoded fails by itself, and the handler does not see it.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.capacity import NOTHING, Needs
from clepsydra.worker.handlers.payloads import Undecodable
from clepsydra.worker.handlers.registry import BatchHandler, DoNotRetry, Handler, RetryAfter
from clepsydra.worker.running import Group, RunningAttempt, is_thrown_away
from clepsydra.worker.targets import Resources
from clepsydra.worker.targets.failures import describe, failure, message_of
from clepsydra.worker.targets.threads import Threads, ThreadsHeld

_ONE_SUCCESS = (SUCCESS,)

# How a call ended, and what it returned if it ended well.
Returned = tuple[Result, Any]


class Executor:
    is_eager = True

    def __init__(self, resources: Resources) -> None:
        self._handlers = resources.registry.handlers
        self._threads = Threads(resources.settings.handler_threads)
        self._log = resources.log
        self._needs = _NeedsByName(resources)

    def needs(self, request: PythonHandler) -> Needs:
        return self._needs[request.name]

    async def close(self) -> None:
        self._threads.close()

    async def execute(self, group: Group) -> Sequence[Result]:
        running = group[0]
        request = running.attempt.target
        handler = self._handlers.get(request.name)
        if isinstance(handler, Handler):
            if handler.is_async:
                try:
                    await handler.call(request.payload, request.content_type, running)
                except BaseException as error:  # whatever users' code may raise
                    return (self._failed_coroutine(error, handler, group),)
                return _ONE_SUCCESS
            call, payload, content_type = handler.call, request.payload, request.content_type
            result, _ = await self._call_in_thread(handler, lambda: call(payload, content_type, running), group)
            return (result,)
        if handler is not None:
            return await self._execute_batch(handler, group)
        # Another worker may have it: during a deployment, some do and some do not.
        return [_not_registered(request.name, running) for running in group]

    async def _execute_batch(self, handler: BatchHandler, group: Group) -> Sequence[Result]:
        undecodable: dict[RunningAttempt, Exception] = {}
        decodable: list[RunningAttempt] = []

        def call() -> Any:
            """Decoding is part of the call: what a validator raises or waits for is the handler's."""
            payloads = []
            for running in group:
                request = running.attempt.target
                try:
                    payloads.append(handler.decode(request.payload, request.content_type))
                except Undecodable as error:
                    undecodable[running] = error
                else:
                    decodable.append(running)
            return handler.call(payloads, decodable) if payloads else _no_call(handler)

        result, returned = await self._call(handler, call, group)
        if result is not SUCCESS:
            # One traceback in the log is enough for all of them.
            return [result, *[replace(result, cause=None)] * (len(group) - 1)]
        results = dict(zip(decodable, self._results_of_batch(handler, returned, decodable), strict=True))
        for running, error in undecodable.items():
            results[running] = _result_of(error)
        return [results[running] for running in group]

    async def _call(self, handler: BatchHandler, call: Callable[[], Any], group: Group) -> Returned:
        if not handler.is_async:
            return await self._call_in_thread(handler, call, group)
        try:
            return SUCCESS, await call()
        except BaseException as error:  # whatever users' code may raise
            return self._failed_coroutine(error, handler, group), None

    def _results_of_batch(self, handler: BatchHandler, returned: Any, group: Group) -> list[Result]:
        if returned is None:
            return [SUCCESS] * len(group)
        if not isinstance(returned, Sequence) or len(returned) != len(group):
            wrong = failure(
                f"{handler.place} takes many payloads and must return a list with an entry for each, None or an "
                f"exception; for {len(group)} payloads it returned {_type_of(returned)}"
            )
            return [wrong] * len(group)
        return [self._result_in_batch(handler, *pair) for pair in zip(group, returned, strict=True)]

    def _result_in_batch(self, handler: BatchHandler, running: RunningAttempt, entry: object) -> Result:
        if entry is None:
            return SUCCESS
        if isinstance(entry, BaseException):
            return _result_of(entry)
        return failure(
            f"{handler.place} must return None or an exception for each payload, and returned {_type_of(entry)}"
        )

    def _failed_coroutine(self, error: BaseException, handler: Handler | BatchHandler, group: Group) -> Result:
        """The result of a coroutine that raised. Raises it again if the attempts are being cancelled."""
        if is_thrown_away(error, group):
            raise error
        # Otherwise something that the handler waited for was cancelled, not the attempt.
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            _mark_cancelled(group)
            raise error
        # SystemExit and the like must not end the worker.
        return _result_of(error)

    async def _call_in_thread(self, handler: Handler | BatchHandler, call: Callable[[], Any], group: Group) -> Returned:
        # Make the contexts now: later, the thread and the event loop might each make one.
        contexts = [running.context for running in group]
        try:
            return await self._threads.run(
                lambda: self._call_and_catch(handler, call, group),
                lambda: self._thread_is_held(handler, group),
                lambda: self._needs[handler.name].give_back(len(group)),
            )
        except ThreadsHeld:
            held = failure(
                f"every handler thread of worker {contexts[0].worker} is held by a handler that outlived its attempt: "
                "let handlers return when context.cancelled is true, or raise handler_threads"
            )
            return held, None

    def _call_and_catch(self, handler: Handler | BatchHandler, call: Callable[[], Any], group: Group) -> Returned:
        """In a thread. Never raises."""
        try:
            returned = call()
        except BaseException as error:  # SystemExit would end the thread without a word
            return _result_of(error), None
        if inspect.isawaitable(returned):
            return _not_awaited(handler, returned), None
        return SUCCESS, returned

    def _thread_is_held(self, handler: Handler | BatchHandler, group: Group) -> None:
        _mark_cancelled(group)
        # The attempts give back what they took, but the thread is not free.
        self._needs[handler.name].take(len(group))
        self._log.warning(
            "handler outlives its attempt and holds a thread",
            handler=handler.name,
            **_names(group),
            threads_held=self._threads.held,
        )


class _NeedsByName(dict[str, Needs]):
    """What each handler needs, from its first use on."""

    def __init__(self, resources: Resources) -> None:
        super().__init__()
        self._handlers = resources.registry.handlers
        self._limit = resources.settings.handler_attempts
        self._capacity = resources.capacity
        self._threads = resources.capacity.resource(resources.settings.handler_threads)

    def __missing__(self, name: str) -> Needs:
        handler = self._handlers.get(name)
        if handler is None:
            return NOTHING
        if handler.is_async:
            needs = Needs(self._capacity.coroutines, self._capacity.resource(self._limit, self._capacity.places))
        else:
            # One thread serves a whole call, however many payloads it takes.
            batch = handler.batch if isinstance(handler, BatchHandler) else 1
            needs = Needs(self._threads, self._capacity.resource(self._limit, self._threads), batch=batch)
        self[name] = needs
        return needs


def _mark_cancelled(group: Group) -> None:
    for running in group:
        running.context.cancelled = True


def _names(group: Group) -> dict[str, str | int]:
    """For the log: the attempt; of several the first, and their number."""
    first = group[0].context
    names: dict[str, str | int] = {"action_id": first.action_id, "attempt_id": first.attempt_id}
    return names if len(group) == 1 else {**names, "attempts": len(group)}


def _result_of(error: BaseException) -> Result:
    if isinstance(error, RetryAfter):
        return failure(message_of(error), retry_after_us=error.delay_us)
    if isinstance(error, DoNotRetry):
        return failure(message_of(error), retryable=False)
    if isinstance(error, Undecodable):
        return failure(f"the payload cannot be decoded: {error}", retryable=False)
    return failure(describe(error), cause=error)


def _not_registered(name: str, running: RunningAttempt) -> Result:
    return failure(
        f'no handler named "{name}" is registered on worker {running.attempt.worker}: start its workers with '
        "--handlers and the module that registers it"
    )


def _not_awaited(handler: Handler | BatchHandler, returned: Any) -> Result:
    if inspect.iscoroutine(returned):
        returned.close()
    return failure(
        f"{handler.place} returned an awaitable, but is not a coroutine function, so nothing awaited it: define it "
        "and what decorates it with async def"
    )


def _no_call(handler: BatchHandler) -> Any:
    """What stands for a call with no payloads."""

    async def nothing() -> None: ...

    return nothing() if handler.is_async else None


def _type_of(returned: object) -> str:
    is_list = isinstance(returned, Sequence) and not isinstance(returned, str | bytes)
    return f"a {type(returned).__name__} of {len(returned)}" if is_list else f"a {type(returned).__name__}"  # type: ignore[arg-type]


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
