"""Notes that the benchmarks' workers leave in a folder, and how they are read.

A count in shared memory, and one appended line for each start where the lateness is wanted.
"""

import mmap
import struct
from pathlib import Path

_COUNT = struct.Struct("<q")


class Counter:
    """A number in shared memory that only this process raises."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(_COUNT.pack(0))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _COUNT.size)
        self._count = 0

    def raise_by(self, count: int) -> None:
        self._count += count
        _COUNT.pack_into(self._memory, 0, self._count)


def executed(folder: Path) -> int:
    """How many no-ops all workers have executed so far."""
    counts = (path.read_bytes() for path in folder.glob("executed-*"))
    return sum(_COUNT.unpack(count)[0] for count in counts if len(count) == _COUNT.size)


def lateness_us(folder: Path) -> list[int]:
    """For every start that was noted: how much later than planned it was."""
    lines = [line.split() for path in folder.glob("starts-*") for line in path.read_text().splitlines()]
    return [int(started) - int(scheduled) for scheduled, started in lines]
