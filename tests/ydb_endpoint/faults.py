"""What goes wrong, and when: a plan that a test writes down before it makes its calls.

A text says in its first line which call it belongs to, so a fault can wait for the call that it is meant for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tests.ydb_endpoint.errors import Status


class Kind(Enum):
    # Answer with a status instead of doing the work, or after having done it.
    STATUS_INSTEAD = "status instead"
    STATUS_AFTER = "status after"
    # Cut every connection, before the work or after it.
    CUT_BEFORE = "cut before"
    CUT_AFTER = "cut after"
    # Do the work, and answer when nobody waits any more.
    SLOW = "slow"
    # Send no more than so many rows of each result, and say so.
    TRUNCATE = "truncate"


@dataclass
class Fault:
    kind: Kind
    # The call that it waits for, as the text names it; None: whichever comes.
    call: str | None = None
    status: Status = Status.SUCCESS
    # How often it strikes.
    times: int = 1
    # How many such requests it lets pass first.
    after: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.status.name} {self.kind.value}" if self.status is not Status.SUCCESS else self.kind.value


def instead(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_INSTEAD, call, status, times, after)


def afterwards(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_AFTER, call, status, times, after)


@dataclass
class Faults:
    planned: list[Fault] = field(default_factory=list)
    # How many faults have struck.
    struck: int = 0
    # Set to let slow answers go.
    patience: asyncio.Event = field(default_factory=asyncio.Event)
    # What is done at a given call before its work begins: a way to let others be faster.
    interruptions: dict[str, Callable[[], None]] = field(default_factory=dict)

    def plan(self, *faults: Fault) -> None:
        self.planned += faults

    def next_for(self, call: str) -> Fault | None:
        """The fault that strikes this request, if any."""
        for fault in self.planned:
            if fault.call not in (None, call):
                continue
            if fault.after:
                fault.after -= 1
                return None
            fault.times -= 1
            if fault.times == 0:
                self.planned.remove(fault)
            self.struck += 1
            return fault
        return None
