"""What the tests of the targets have in common: attempts that run, and specs of every kind."""

import asyncio
from collections.abc import Sequence
from typing import Any

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.tables import Action, Queue, Row
from clepsydra.core.times import MINUTE_US
from clepsydra.v1.action_pb2 import HttpHeader, HttpRequest, LogLine, PythonHandler, Spec
from clepsydra.worker.running import RunningAttempt
from clepsydra.worker.targets import Targets

# Nothing here takes a second; a test that waits this long has failed.
LIMIT_S = 10.0

GUID = "guid"
OCCURRENCE_US = 1_700_000_000_000_000
SCHEDULED_US = 1_700_000_001_500_000
DEADLINE_US = 1_700_000_061_500_000


def an_attempt(spec: Spec, *, action_id: str = "water-the-plants", number: int = 2) -> RunningAttempt:
    kind = spec.WhichOneof("target")
    assert kind is not None
    row = Row(Queue.PROCESSING, 0, DEADLINE_US, action_id, GUID, DEADLINE_US)
    action = Action(action_id, GUID, b"", spec.SerializeToString(), b"", SCHEDULED_US)
    target = getattr(spec, kind)
    attempt = Attempt(row, action, kind, target, OCCURRENCE_US, number, MINUTE_US, DEADLINE_US, "worker-7")
    attempt.start(DEADLINE_US - MINUTE_US)
    return RunningAttempt(attempt)


def http(url: str, method: str = "", body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Spec:
    given = [HttpHeader(name=name, value=value) for name, value in headers]
    return Spec(http=HttpRequest(method=method, url=url, body=body, headers=given))


def handled_by(name: str, payload: bytes = b"", content_type: str = "") -> Spec:
    return Spec(handler=PythonHandler(name=name, payload=payload, content_type=content_type))


def logged(message: str) -> Spec:
    return Spec(log=LogLine(message=message))


async def cancelled(running: "asyncio.Task[Any]") -> bool:
    """Cancel an execution as the deadline does, and wait for its end."""
    running.cancel()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.wait([running])
    return running.cancelled()


async def execute_together(targets: Targets, group: Sequence[RunningAttempt]) -> Sequence[Result]:
    """One call of a target, as the pool makes it."""
    return await targets.executors[group[0].attempt.kind].execute(group)


async def execute(targets: Targets, spec: Spec, **attempt: Any) -> Result:
    [result] = await execute_together(targets, [an_attempt(spec, **attempt)])
    return result


def executing(targets: Targets, spec: Spec, running: RunningAttempt | None = None) -> "asyncio.Task[Sequence[Result]]":
    return asyncio.create_task(execute_together(targets, [running or an_attempt(spec)]))
