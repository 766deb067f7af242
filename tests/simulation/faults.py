"""Everything that can go wrong in a run, as values: a plan lists them, a run carries them out, and marks prove it."""

from enum import Enum
from typing import NamedTuple


class CallFault(Enum):
    """What can become of one store call."""

    FAILS_BEFORE = "a call failed before it was applied"
    FAILS_AFTER = "a call failed after it was applied"
    IS_LOST = "a call was lost, and nobody knew"
    COMES_LATE = "a call was applied long after its caller had given it up"
    IS_SLOW_THERE = "a call was slow on its way to the store"
    IS_SLOW_BACK = "an answer was slow on its way back"
    HANGS = "a call hung for longer than any lease"
    REPEATED = "a call was applied twice at once"
    REPEATED_LATE = "a call was applied again, late"
    KILLS_BEFORE = "a process died before its call was applied"
    KILLS_AFTER = "a process died after its call was applied, before the answer"


class TroubledCall(NamedTuple):
    """The nth call of a method by a node, restarts included."""

    node: str
    method: str
    nth: int
    fault: CallFault
    delay_us: int


class Kill(NamedTuple):
    """Kill a process after so many of its callbacks, and start it again after a while."""

    at_us: int
    node: str
    steps: int
    down_us: int


class Drain(NamedTuple):
    """Stop a worker gracefully, and start it again after a while."""

    at_us: int
    node: str
    down_us: int


class Stall(NamedTuple):
    """Hold a process back, as SIGSTOP or a long pause of its machine does."""

    at_us: int
    node: str
    for_us: int


class ClockStep(NamedTuple):
    """Set a node's wall clock."""

    at_us: int
    node: str
    by_us: int


class Outage(NamedTuple):
    """The store is not there, for everybody."""

    at_us: int
    for_us: int


class BrokenLocks(NamedTuple):
    """The lock table gives every lock to everyone, and confirms all of them."""

    at_us: int
    for_us: int


class Damage(Enum):
    ROW_LOST = "a live row was taken away"
    ROW_DOUBLED = "a live row was doubled"


class Corruption(NamedTuple):
    """Damage the tables of one action, and repair them a little later, while the fleet runs."""

    at_us: int
    action: int
    damage: Damage
    repaired_after_us: int


TimedFault = Kill | Drain | Stall | ClockStep | Outage | BrokenLocks | Corruption


class Behaviour(Enum):
    """What a handler does when it is called."""

    SUCCEEDS = "a handler succeeded"
    FAILS = "a handler failed"
    ASKS_FOR_TIME = "a handler asked to be tried later"
    GIVES_UP = "a handler asked not to be tried again"
    HANGS = "a handler hung until its attempt was cancelled"
    KILLS = "a handler killed its worker"


# What a plan turns on for a whole run.
SKEWED_CLOCKS = "a node's wall clock was wrong from the start"
DRIFTING_CLOCKS = "a node's monotonic clock ran fast or slow"
LOST_WAKEUPS = "every wake-up was lost"
FLOODS = "a client flooded a few actions with changes"

# What a stall outlasted.
STALLED_BEYOND_LOCK = "a stall lasted longer than a lock's life"
STALLED_BEYOND_TIMEOUT = "an attempt's timeout passed while its worker was stalled"

# What the oracle saw happen: the rare meetings that the faults are for.
SIGHTS: tuple[str, ...] = (
    "an attempt was found interrupted",
    "an attempt was superseded",
    "a lease was extended",
    "an occurrence expired",
    "an occurrence was cancelled",
    "an action was purged",
    "an action was removed at its end",
    "a tombstone was left in place of a record",
    "an action ended as failed",
    "a suspect ran alone",
    "an action was parked",
    "a begin found its row gone",
    "a finish found its row gone",
    "an advance deleted a stale row",
    "an advance recognised its own mark",
    "a put found a conflict",
    "a put came too late",
    "a put recognised its own guid",
    "a request was replayed",
    "a creation was repeated after its record had gone",
    "a shard lock was taken over",
    "a client did not learn the outcome",
    "changes were put together",
    "a worker was stopped by a failing store",
)

MARKS: tuple[str, ...] = (
    *(fault.value for fault in CallFault),
    *(behaviour.value for behaviour in Behaviour),
    *(damage.value for damage in Damage),
    *(kind.__name__ for kind in (Kill, Drain, Stall, ClockStep, Outage, BrokenLocks, Corruption)),
    SKEWED_CLOCKS,
    DRIFTING_CLOCKS,
    LOST_WAKEUPS,
    FLOODS,
    STALLED_BEYOND_LOCK,
    STALLED_BEYOND_TIMEOUT,
    *SIGHTS,
)
