"""What the benchmarks' workers execute: nothing, and a note of when that was."""

import asyncio
import os
from pathlib import Path

from benchmarks.notes import Counter
from clepsydra.core.clock import SystemClock
from clepsydra.worker import Context, handler

_CLOCK = SystemClock()
_FOLDER = Path(os.environ["BENCHMARK_FOLDER"]) if "BENCHMARK_FOLDER" in os.environ else None

_executed = Counter(_FOLDER / f"executed-{os.getpid()}") if _FOLDER else None
_starts = (_FOLDER / f"starts-{os.getpid()}").open("ab", buffering=0) if _FOLDER else None


@handler("noop")
async def noop() -> None:
    if _executed is not None:
        _executed.raise_by(1)


@handler("noop-batch", batch=1000)
async def noops(payloads: list[bytes]) -> None:
    if _executed is not None:
        _executed.raise_by(len(payloads))


@handler("note")
async def note(context: Context) -> None:
    if _starts is not None:
        _starts.write(b"%d %d\n" % (context.scheduled_us, _CLOCK.now_us()))


@handler("hold")
async def hold(context: Context) -> None:
    """The first attempt never ends; the next one notes that it began, and succeeds."""
    if _starts is not None:
        _starts.write(b"%d %d\n" % (context.attempt_number, _CLOCK.now_us()))
    if context.attempt_number == 1:
        await asyncio.Event().wait()
