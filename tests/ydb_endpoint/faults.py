"""Fault injection: a test plans which requests fail, and how, before it makes its calls.

The first line of a text names its call, so a fault can be planned for one call.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tests.ydb_endpoint.errors import Status


class Kind(Enum):
    # Respond with a status instead of doing the work, or after the work is done.
    STATUS_INSTEAD = "status instead"
    STATUS_AFTER = "status after"
    # Break every connection, before the work or after it.
    CUT_BEFORE = "cut before"
    CUT_AFTER = "cut after"
    # Do the work, and respond only when the test allows it.
    SLOW = "slow"
    # Send at most `rows` rows of each result, marked as truncated.
    TRUNCATE = "truncate"
    # Stream the rows of the text's SELECT, and then respond with a status: nothing was done, or everything.
    STATUS_STREAMED = "status after rows"
    STATUS_STREAMED_DONE = "status after rows, and the work"
    # A partition restarts or splits between the read and the commit.
    LOSE_LOCKS = "lose locks"


@dataclass
class Fault:
    kind: Kind
    # The call that fails, by the name in its text; None: the next one, whatever it is.
    call: str | None = None
    status: Status = Status.SUCCESS
    # How many requests fail.
    times: int = 1
    # How many requests of the call succeed first.
    after: int = 0
    rows: int = 0

    @property
    def streams_early(self) -> bool:
        return self.kind in (Kind.STATUS_STREAMED, Kind.STATUS_STREAMED_DONE, Kind.LOSE_LOCKS)

    def __str__(self) -> str:
        return f"{self.status.name} {self.kind.value}" if self.status is not Status.SUCCESS else self.kind.value


def instead(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_INSTEAD, call, status, times, after)


def afterwards(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_AFTER, call, status, times, after)


def streamed(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_STREAMED, call, status, times, after)


def streamed_done(status: Status, call: str | None = None, times: int = 1, after: int = 0) -> Fault:
    return Fault(Kind.STATUS_STREAMED_DONE, call, status, times, after)


# Faults after which the server says that it has done nothing: a client that tries again notices no difference.
HARMLESS = (
    instead(Status.ABORTED),
    instead(Status.OVERLOADED),
    instead(Status.BAD_SESSION),
    instead(Status.SESSION_BUSY),
    streamed(Status.ABORTED),
    streamed(Status.OVERLOADED),
    Fault(Kind.LOSE_LOCKS),
)


@dataclass
class Faults:
    planned: list[Fault] = field(default_factory=list)
    # How many requests have failed as planned.
    injected: int = 0
    # Set by the test to send the slow responses.
    release_slow: asyncio.Event = field(default_factory=asyncio.Event)
    # Run once before the work of a call begins: this is how a test lets another transaction commit first.
    interruptions: dict[str, Callable[[], None]] = field(default_factory=dict)

    # How many of the texts meet a harmless fault that no test planned.
    trouble: float = 0.0
    troubles: int = 0
    randomness: random.Random = field(default_factory=lambda: random.Random(0))

    def next_trouble(self) -> Fault | None:
        if not self.trouble or self.randomness.random() >= self.trouble:
            return None
        self.troubles += 1
        return self.randomness.choice(HARMLESS)

    def plan(self, *faults: Fault) -> None:
        self.planned += faults

    def next_for(self, call: str) -> Fault | None:
        """The fault for this request, if one is planned."""
        for fault in self.planned:
            if fault.call not in (None, call):
                continue
            if fault.after:
                fault.after -= 1
                return None
            fault.times -= 1
            if fault.times == 0:
                self.planned.remove(fault)
            self.injected += 1
            return fault
        return None
