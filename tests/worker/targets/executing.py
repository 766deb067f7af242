"""What the tests of the targets have in common: an attempt's context, and specs of every kind."""

import asyncio
from typing import Any

from clepsydra.v1.action_pb2 import HttpHeader, HttpRequest, LogLine, PythonHandler, Spec
from clepsydra.worker import Context
from clepsydra.worker.result import Result
from clepsydra.worker.targets import Targets

# Nothing here takes a second; a test that waits this long has failed.
LIMIT_S = 10.0


def an_attempt(**changes: Any) -> Context:
    told: dict[str, Any] = {
        "action_id": "water-the-plants",
        "attempt_id": "guid-1700000000000000-2",
        "attempt_number": 2,
        "idempotency_key": "guid-1700000000000000",
        "occurrence_us": 1_700_000_000_000_000,
        "scheduled_us": 1_700_000_001_500_000,
        "deadline_us": 1_700_000_061_500_000,
        "worker": "worker-7",
    }
    return Context(**(told | changes))


def http(url: str, method: str = "", body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Spec:
    given = [HttpHeader(name=name, value=value) for name, value in headers]
    return Spec(http=HttpRequest(method=method, url=url, body=body, headers=given))


def handled_by(name: str, payload: bytes = b"", content_type: str = "") -> Spec:
    return Spec(handler=PythonHandler(name=name, payload=payload, content_type=content_type))


def logged(message: str) -> Spec:
    return Spec(log=LogLine(message=message))


async def cancelled(running: "asyncio.Task[Result]") -> bool:
    """Cancel an execution as the deadline does, and wait for its end."""
    running.cancel()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait([running])
    return running.cancelled()


def executing(targets: Targets, spec: Spec, context: Context | None = None) -> "asyncio.Task[Result]":
    return asyncio.create_task(targets.execute(spec, context or an_attempt()))
