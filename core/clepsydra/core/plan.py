"""What planning takes and gives: see `lifecycle.py`."""

from collections.abc import Mapping
from typing import NamedTuple

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.action.events import Decision
from clepsydra.core.tables import Advance
from clepsydra.core.validation.rules import Violations


class Refusal(NamedTuple):
    """Why a request cannot become an action."""

    violations: Violations
    # The request itself is valid, but its schedule has no occurrence from now on. It may have been accepted earlier.
    depends_on_time: bool


class Holder(NamedTuple):
    """Who had an attempt that was interrupted. The name is empty where it is not known."""

    worker: str
    start_us: int


class BeginTerms(NamedTuple):
    """What all begins of one worker have in common."""

    worker: str
    lease_us: int
    # Added to each lease, for writing the outcome.
    grace_us: int
    # An action that cannot be decoded is looked at again after this time.
    set_aside_us: int
    # By action, where its attempt was interrupted: the worker that had it in hand, and since when, as far as known.
    holders: Mapping[str, Holder] = {}


class Begin(NamedTuple):
    """What to write for a due row, and the attempt that begins with it, if any."""

    advance: Advance
    # None: this version cannot decode the action, and its row is set aside.
    decision: Decision | None
    attempt: Attempt | None = None


# An attempt that has ended, how, and a random number from 0 up to 1 for the jitter of a retry.
Ended = tuple[Attempt, Result, float]
