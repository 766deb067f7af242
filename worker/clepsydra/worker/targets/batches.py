"""Executes a Python handler that takes many payloads at once, and tells of each how it went.

The function returns one entry for each payload, in their order: None for a success, an exception for a failure; or
nothing, and then all have succeeded. What it raises is a failure of them all. A payload that cannot be decoded fails
by itself, and the function does not see it.
"""

from collections.abc import Sequence
from typing import Any

from clepsydra.v1.action_pb2 import PythonHandler
from clepsydra.worker.context import Told
from clepsydra.worker.handling import BatchHandler
from clepsydra.worker.payloads import Undecodable
from clepsydra.worker.result import SUCCESS, Result, failure
from clepsydra.worker.targets.functions import Functions


class BatchTarget:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    async def execute(
        self, handler: BatchHandler, requests: Sequence[PythonHandler], told: Sequence[Told]
    ) -> list[Result]:
        undecodable: dict[int, Exception] = {}
        given: list[Told] = list(told)

        def call() -> Any:
            payloads, decode = [], handler.decode
            for n, request in enumerate(requests):
                try:
                    payloads.append(decode(request.payload, request.content_type))
                except Undecodable as error:
                    undecodable[n] = error
            if undecodable:
                given[:] = [each for n, each in enumerate(told) if n not in undecodable]
            return handler.call(payloads, given) if payloads else _nothing(handler)

        result, returned = await self._functions.call(handler, call, told)
        if result is not SUCCESS:
            return [result] * len(told)
        if not undecodable:
            return self._each(handler, returned, told)
        results = iter(self._each(handler, returned, given))
        return [
            self._functions.failed(handler, (each,), undecodable[n]) if n in undecodable else next(results)
            for n, each in enumerate(told)
        ]

    def _each(self, handler: BatchHandler, returned: Any, told: Sequence[Told]) -> list[Result]:
        """What the function said of each."""
        if returned is None:
            return [SUCCESS] * len(told)
        if not isinstance(returned, Sequence) or len(returned) != len(told):
            wrong = failure(
                f"{handler.place} takes many payloads and must return a list with an entry for each, None or an "
                f"exception; for {len(told)} payloads it returned {_shown(returned)}"
            )
            return [wrong] * len(told)
        return [self._one(handler, each, said) for each, said in zip(told, returned, strict=True)]

    def _one(self, handler: BatchHandler, each: Told, said: object) -> Result:
        if said is None:
            return SUCCESS
        if isinstance(said, BaseException):
            return self._functions.failed(handler, (each,), said)
        return failure(f"{handler.place} must say None or an exception of each payload, and said {_shown(said)}")


def _nothing(handler: BatchHandler) -> Any:
    """What a call with nothing to do returns."""

    async def nothing() -> None: ...

    return nothing() if handler.is_async else None


def _shown(returned: object) -> str:
    is_list = isinstance(returned, Sequence) and not isinstance(returned, str | bytes)
    return f"a {type(returned).__name__} of {len(returned)}" if is_list else f"a {type(returned).__name__}"  # type: ignore[arg-type]
