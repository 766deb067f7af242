"""What can happen to an action. `state_machine.step` says what each event means.

The events that every executed action has are named tuples, which take a third of the time to make.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from clepsydra.v1.action_pb2 import Attempt


@dataclass(frozen=True, slots=True)
class Accepted:
    """A user created the action, or changed its schedule: a new life with a fresh status."""


@dataclass(frozen=True, slots=True)
class TargetChanged:
    """A user changed what the action does, and not when: a new life that goes on with the plan."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A user holds the action back."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A user lets a paused action go on."""


@dataclass(frozen=True, slots=True)
class RunRequested:
    """A user wants the action run now."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A user cancelled the occurrence: the attempt that was running, or, without one, the wait for its time."""

    attempt: Attempt | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """A user removed the action; its tombstone is kept for a while."""

    retention_us: int


@dataclass(frozen=True, slots=True)
class Began:
    """An attempt begins: the row moves to the end of its lease.

    The status stays as it is, unless the action is a suspect: then it records that this attempt is that of the only
    suspect in its process.
    """

    lease_us: int
    grace_us: int


class Succeeded(NamedTuple):
    attempt: Attempt


class Failed(NamedTuple):
    """An attempt failed. `retry_after_us` is the delay that the target asked for, in place of the policy's."""

    attempt: Attempt
    retryable: bool = True
    retry_after_us: int | None = None


class Interrupted(NamedTuple):
    """An attempt began and did not come to an end.

    It is suspicious if its end was never written, for its worker may have died of it; not if the worker itself says so.
    """

    attempt: Attempt
    is_suspicious: bool = True


@dataclass(frozen=True, slots=True)
class Expired:
    """The occurrence could not start within its start deadline."""


@dataclass(frozen=True, slots=True)
class Purged:
    """An ended or deleted action has been kept long enough."""


Event = (
    Accepted
    | TargetChanged
    | Paused
    | Resumed
    | RunRequested
    | Cancelled
    | Deleted
    | Began
    | Succeeded
    | Failed
    | Interrupted
    | Expired
    | Purged
)


class Decision(Enum):
    """What to do with a live row that has come due."""

    BEGIN = "begin"
    EXPIRE = "expire"
    INTERRUPT = "interrupt"
    PURGE = "purge"
    WAIT = "wait"
