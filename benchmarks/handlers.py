"""What the benchmarks' workers execute: nothing, and a note of when that was.

Notes go to files that the benchmark reads: a count in shared memory, and one appended line for each start where the
lateness is wanted.
"""

import mmap
import os
import struct
from pathlib import Path

from clepsydra.core.clock import SystemClock
from clepsydra.worker import Context, handler

_CLOCK = SystemClock()
_FOLDER = Path(os.environ["BENCHMARK_FOLDER"]) if "BENCHMARK_FOLDER" in os.environ else None
_COUNT = struct.Struct("<q")


class Counter:
    """A number in shared memory that only this process raises."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(_COUNT.pack(0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _COUNT.size)
        self._count = 0

    def raise_by_one(self) -> None:
        self._count += 1
        _COUNT.pack_into(self._memory, 0, self._count)


_executed = Counter(_FOLDER / f"executed-{os.getpid()}") if _FOLDER else None
_starts = (_FOLDER / f"starts-{os.getpid()}").open("ab", buffering=0) if _FOLDER else None


@handler("noop")
async def noop() -> None:
    if _executed is not None:
        _executed.raise_by_one()


@handler("note")
async def note(context: Context) -> None:
    if _starts is not None:
        _starts.write(b"%d %d\n" % (context.scheduled_us, _CLOCK.now_us()))


def executed(folder: Path) -> int:
    """How many no-ops all workers have executed so far."""
    counts = (path.read_bytes() for path in folder.glob("executed-*"))
    return sum(_COUNT.unpack(count)[0] for count in counts if len(count) == _COUNT.size)


def lateness_us(folder: Path) -> list[int]:
    """For every start that was noted: how much later than planned it was."""
    lines = [line.split() for path in folder.glob("starts-*") for line in path.read_text().splitlines()]
    return [int(started) - int(scheduled) for scheduled, started in lines]
