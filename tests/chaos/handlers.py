"""The handlers that chaos executes. No work is done without a line in the side log before it and one after it."""

import asyncio
import os
import time
from functools import cache

from pydantic import BaseModel

from clepsydra.worker import Context, handler
from tests.chaos.side_log import Event, Line, SideLog

_LOOK_S = 0.05


class Work(BaseModel):
    """The payload: how the execution shall go."""

    # What the action's spec says: the handler sees its deadline only.
    timeout_us: int
    # So many first attempts at an occurrence fail.
    failures: int = 0
    takes_ms: int = 0
    # Work until this file exists.
    until: str = ""


class FailedOnPurpose(Exception):
    pass


@handler("record")
def record(work: Work, context: Context) -> None:
    """Quick work, in a thread."""
    _write(Event.STARTED, work, context)
    _end(work, context)


@handler("linger")
async def linger(work: Work, context: Context) -> None:
    """Work that takes its time."""
    _write(Event.STARTED, work, context)
    await asyncio.sleep(work.takes_ms / 1000)
    _end(work, context)


@handler("hold")
async def hold(work: Work, context: Context) -> None:
    """Work that ends when a test says so."""
    _write(Event.STARTED, work, context)
    # What is waited for lies outside of the process, so there is no event to wait for.
    while not os.path.exists(work.until):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(_LOOK_S)
    _end(work, context)


def _end(work: Work, context: Context) -> None:
    if context.attempt_number <= work.failures:
        _write(Event.FAILED, work, context)
        raise FailedOnPurpose(f"attempt {context.attempt_number} of {work.failures} that fail")
    _write(Event.SUCCEEDED, work, context)


def _write(event: Event, work: Work, context: Context) -> None:
    _side_log().write(
        Line(
            event=event,
            action_id=context.action_id,
            idempotency_key=context.idempotency_key,
            attempt_id=context.attempt_id,
            number=context.attempt_number,
            pid=os.getpid(),
            at_us=time.time_ns() // 1000,
            due_us=context.scheduled_us,
            begun_us=context.deadline_us - work.timeout_us,
        )
    )


@cache
def _side_log() -> SideLog:
    return SideLog.of_worker()
