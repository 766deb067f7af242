"""Handlers that run for minutes or for a moment, and note when they start, end and are cancelled."""

import asyncio
import os
from pathlib import Path

from clepsydra.core.clock import SystemClock
from clepsydra.core.times import SECOND_US
from clepsydra.worker import Context, handler

_CLOCK = SystemClock()
MOMENT_US = SECOND_US

_FOLDER = os.environ.get("BENCHMARK_FOLDER")
_notes = (Path(_FOLDER) / f"notes-{os.getpid()}").open("a", buffering=1) if _FOLDER else None


@handler("minutes")
async def minutes(context: Context) -> None:
    await _note_until(context, 600)


@handler("minutes-too")
async def minutes_too(context: Context) -> None:
    """Another target for an update."""
    await _note_until(context, 600)


@handler("moment")
async def moment(context: Context) -> None:
    await _note_until(context, MOMENT_US / SECOND_US)


async def _note_until(context: Context, seconds: float) -> None:
    _note("started", context)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        _note("cancelled" if context.cancelled else "cancelled without a word", context)
        raise
    _note("ended", context)


def _note(what: str, context: Context) -> None:
    assert _notes is not None, "a worker of the benchmark has a folder"
    _notes.write(f"{what}\t{context.attempt_id}\t{context.action_id}\t{_CLOCK.now_us()}\n")
