"""The records that jobs leave behind: see drivers/job.py."""

from array import array
from pathlib import Path
from typing import NamedTuple

_FIELDS = 3


class Run(NamedTuple):
    """All runs of one job together."""

    times: int
    planned_us: float
    # The first time that it was started.
    started_us: float


def executed(folder: Path, process: int | None = None) -> int:
    """How many jobs have run, or have run in one process, those that ran in two processes counted twice.

    Cheap enough to be asked all the time.
    """
    counted = (values[::_FIELDS] for values in _files(folder, process))
    return sum(len(runs) - runs.count(0.0) for runs in counted)


def runs(folder: Path) -> dict[int, Run]:
    """What every job did, by its number."""
    found: dict[int, Run] = {}
    for values in _files(folder):
        for number in range(len(values) // _FIELDS):
            times, planned_us, started_us = values[number * _FIELDS : (number + 1) * _FIELDS]
            if times:
                seen = found.get(number, Run(0, planned_us, started_us))
                found[number] = Run(seen.times + int(times), planned_us, min(seen.started_us, started_us))
    return found


def first_starts_us(folder: Path) -> list[float]:
    """When each process started its first job."""
    firsts = [[started for started in values[_FIELDS - 1 :: _FIELDS] if started] for values in _files(folder)]
    return [min(starts) for starts in firsts if starts]


def last_start_us(folder: Path) -> float:
    """When the last run of all began, the second run of a job included."""
    return max((max(values[_FIELDS - 1 :: _FIELDS]) for values in _files(folder) if values), default=0.0)


def _files(folder: Path, process: int | None = None) -> list["array[float]"]:
    found = []
    for path in folder.glob(f"records-{process or '*'}"):
        content = path.read_bytes()
        values: array[float] = array("d")
        values.frombytes(content[: len(content) // (8 * _FIELDS) * (8 * _FIELDS)])
        found.append(values)
    return found
