"""The job that every tool executes: one call to the operating system, which writes its record into a file.

That costs the same in every tool and outlives a kill -9. Where the harness wants jobs that take a while, they rest
first, without keeping others from running.
"""

import asyncio
import os
import struct
import time
from pathlib import Path

REST_S = float(os.environ.get("BENCHMARK_REST_S", "0"))

# How often the job ran in this process, when it was planned for, when it was started.
_RECORD = struct.Struct("<3d")
# Jobs that run have smaller numbers than this; those that wait for ever may have greater ones.
_MOST_JOBS = 1 << 17


def run(number: int, planned_us: float) -> None:
    """The job where jobs have threads."""
    started_us = time.time_ns() // 1000
    if REST_S:
        time.sleep(REST_S)
    _write(number, planned_us, started_us)


async def run_async(number: int, planned_us: float) -> None:
    """The job where jobs share an event loop."""
    started_us = time.time_ns() // 1000
    if REST_S:
        await asyncio.sleep(REST_S)
    _write(number, planned_us, started_us)


class _JobLines:
    """A file with a record for every job that this process has run."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / f"records-{os.getpid()}", os.O_CREAT | os.O_WRONLY, 0o644)
        self._runs = bytearray(_MOST_JOBS)

    def write(self, number: int, planned_us: float, started_us: int) -> None:
        runs = self._runs[number] = self._runs[number] + 1
        os.pwrite(self._file, _RECORD.pack(runs, planned_us, started_us), number * _RECORD.size)


_records: _JobLines | None = None


def _write(number: int, planned_us: float, started_us: int) -> None:
    global _records  # noqa: PLW0603 - tools find a job by its name, and hand it nothing but its arguments
    if _records is None:
        _records = _JobLines(Path(os.environ["BENCHMARK_RECORDS"]))
    _records.write(number, planned_us, started_us)
