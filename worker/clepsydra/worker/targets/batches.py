"""Executes a Python handler that takes many payloads at once, and tells of each how it went.

The function returns one entry for each payload, in their order: None for a success, an exception for a failure; or
nothing, and then all have succeeded. What it raises is a failure of them all. A payload that cannot be decoded fails
by itself, and the function does not see it.
"""

from collections.abc import Sequence
from typing import Any

from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.context import Context
from clepsydra.worker.handling import BatchHandler
from clepsydra.worker.payloads import Undecodable
from clepsydra.worker.result import SUCCESS, Result, failure
from clepsydra.worker.targets.functions import Functions


class BatchTarget:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    async def execute(
        self, handler: BatchHandler, requests: Sequence[PythonHandler], contexts: Sequence[Context]
    ) -> list[Result]:
        undecodable: dict[int, Exception] = {}
        given: list[Context] = list(contexts)

        def call() -> Any:
            payloads = []
            for n, request in enumerate(requests):
                try:
                    payloads.append(handler.decode(request.payload, request.content_type))
                except Undecodable as error:
                    undecodable[n] = error
            given[:] = [context for n, context in enumerate(contexts) if n not in undecodable]
            return handler.call(payloads, given) if payloads else _nothing(handler)

        result, returned = await self._functions.call(handler, call, contexts)
        if result is not SUCCESS:
            return [result] * len(contexts)
        results = iter(self._each(handler, returned, given))
        return [
            self._functions.failed(handler, (context,), undecodable[n]) if n in undecodable else next(results)
            for n, context in enumerate(contexts)
        ]

    def _each(self, handler: BatchHandler, returned: Any, contexts: Sequence[Context]) -> list[Result]:
        """What the function said of each."""
        if returned is None:
            return [SUCCESS] * len(contexts)
        if not isinstance(returned, Sequence) or len(returned) != len(contexts):
            wrong = failure(
                f"{handler.place} takes many payloads and must return a list with an entry for each, None or an "
                f"exception; for {len(contexts)} payloads it returned {_shown(returned)}"
            )
            return [wrong] * len(contexts)
        return [self._one(handler, context, said) for context, said in zip(contexts, returned, strict=True)]

    def _one(self, handler: BatchHandler, context: Context, said: object) -> Result:
        if said is None:
            return SUCCESS
        if isinstance(said, BaseException):
            return self._functions.failed(handler, (context,), said)
        return failure(f"{handler.place} must say None or an exception of each payload, and said {_shown(said)}")


def _nothing(handler: BatchHandler) -> Any:
    """What a call with nothing to do returns."""

    async def nothing() -> None: ...

    return nothing() if handler.is_async else None


def _shown(returned: object) -> str:
    is_list = isinstance(returned, Sequence) and not isinstance(returned, str | bytes)
    return f"a {type(returned).__name__} of {len(returned)}" if is_list else f"a {type(returned).__name__}"  # type: ignore[arg-type]
