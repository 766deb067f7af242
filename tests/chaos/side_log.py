"""What the handlers saw: every start and every end of an execution, synced to the disk before anything else happens."""

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.chaos.journal import Appender, entries_in

# Where a worker's handlers find the file.
VARIABLE = "CHAOS_SIDE_LOG"


class Event(StrEnum):
    STARTED = "started"
    # The handler is about to return, or to raise.
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Line(NamedTuple):
    event: Event
    action_id: str
    idempotency_key: str
    attempt_id: str
    number: int
    pid: int
    at_us: int
    # What the attempt was planned for.
    due_us: int
    # When its worker began to execute it: its begin was written before.
    begun_us: int

    @property
    def guid(self) -> str:
        """The life that the execution belongs to. The key may be that of an earlier life with the same occurrence."""
        return self.attempt_id.partition("-")[0]


class SideLog:
    def __init__(self, path: str | Path) -> None:
        self._appender = Appender(path, synced=True)

    @classmethod
    def of_worker(cls) -> "SideLog":
        return cls(os.environ[VARIABLE])

    def write(self, line: Line) -> None:
        self._appender.append([line._asdict()])


def lines_in(path: Path) -> Iterator[Line]:
    for record in entries_in(path):
        yield Line(**{**record, "event": Event(record["event"])})
