"""The port: everything that schedulers, workers and tools ask of a store.

Each method is one transaction and takes a batch; a batch names an action at most once. Each method is safe to repeat,
at once or late: a repeated call finds its own marks (a guid, a lock guid, a `Mark`) and reports what the first call
did, or finds that the rows have changed since and does nothing. Every store passes `tests/conformance`; the memory
store is the specification in the plainest code.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from clepsydra.core.tables import Action, Advance, Due, Inspected, Inspection, LiveRow, LockRow, Put, Queue, Row

__all__ = [
    "Acquired",
    "Action",
    "Advance",
    "AdvanceOutcome",
    "Audit",
    "Due",
    "Heartbeat",
    "Inspected",
    "Inspection",
    "LiveRow",
    "Load",
    "Lock",
    "LockInfo",
    "LockRow",
    "Mark",
    "Page",
    "Put",
    "PutOutcome",
    "PutResult",
    "Queue",
    "Row",
    "StalePage",
    "Stats",
    "Store",
    "Version",
    "Violation",
]


class PutOutcome(Enum):
    DONE = "done"
    # The action is not as it was seen: `current` is what the store has.
    CONFLICT = "conflict"
    # The call is older than the longest time for which a call may be retried.
    TOO_LATE = "too late"


class PutResult(NamedTuple):
    outcome: PutOutcome
    current: Action | None = None


class Mark(NamedTuple):
    """Unique per call: a repeated call recognises by it what an earlier try has done."""

    sync_guid: str
    at_us: int


class Version(NamedTuple):
    """What tells whether an action is still as it was seen: every new life and every new status changes it."""

    guid: str
    scheduled_at_us: int


class Page(NamedTuple):
    """What a worker reads from a shard, in one snapshot."""

    # From `incoming_queue`, oldest first, each with its action.
    incoming: Sequence[Due]
    # From `processing_queue`, what comes due until the horizon, earliest first.
    due: Sequence[Due]


class AdvanceOutcome(Enum):
    DONE = "done"
    # The row existed with an old guid, and was deleted.
    STALE = "stale"
    # The row does not exist, or its action has changed: nothing was done.
    GONE = "gone"
    # An earlier try of this very call may have done it; nobody can find out any more.
    UNKNOWN = "unknown"


class Lock(NamedTuple):
    """A shard lock that was acquired: the guid is the proof."""

    shard_id: int
    guid: str


class Acquired(NamedTuple):
    lock: Lock
    # The store's clock, by which the worker disciplines its own.
    now_us: int
    # The worker whose lock it was, and the lock's guid, if that was stale; empty if the lock was free.
    taken_from: str = ""
    taken_guid: str = ""


class Heartbeat(NamedTuple):
    """What a heartbeat found."""

    # The shards whose locks this worker has lost.
    lost: frozenset[int]
    # How many shards wait for a worker: their lock is free, or its heartbeat is too old.
    waiting: int
    now_us: int


class StalePage(NamedTuple):
    """Rows with old guids in one page of `processing_queue`."""

    stale: Sequence[Row]
    # The position of the next page; None at the end of the shard.
    next_after: tuple[int, str, str] | None
    # How many rows the page had, stale or not.
    seen: int


class Load(NamedTuple):
    """What the rows with a current guid stand for. A row with an old guid stands for nothing."""

    # Rows at the time that their action is planned for: an attempt will begin then.
    waiting: int = 0
    # Rows of such actions at another time: an attempt runs, or was running when its worker died.
    running: int = 0
    # Rows of actions that are paused, have ended or were deleted, and of those whose state cannot be told.
    kept: int = 0
    # The earliest time of a waiting row.
    next_us: int | None = None


class LockInfo(NamedTuple):
    """A row of `shard_locks`, and the shard's load, for operators."""

    shard_id: int
    locked: bool
    guid: str
    locked_by: str
    processing_start_at_us: int
    heartbeat_at_us: int
    incoming_rows: int
    processing_rows: int
    # The earliest time of a row in either queue; None if the shard is empty.
    earliest_us: int | None
    load: Load = Load()


class Stats(NamedTuple):
    """Counts over the whole installation. Rows are those of both queues, whatever they stand for."""

    # Deleted ones included, until they are purged.
    actions: int
    incoming_rows: int
    processing_rows: int
    due_rows: int
    earliest_us: int | None
    shards: int
    locked_shards: int
    # The load of all shards together.
    load: Load = Load()
    # How many waiting rows are due.
    due_waiting: int = 0
    # Pairs of a state and its number of actions, in the order of states. State 0 cannot be told.
    states: Sequence[tuple[int, int]] = ()


class Violation(NamedTuple):
    """An action that breaks the invariant: `rows` are its rows with its current guid."""

    action_id: str
    guid: str
    rows: Sequence[Row]


class Audit(NamedTuple):
    """The invariant, checked on a consistent snapshot: every action has exactly one live row.

    A row in a shard that the installation does not have is not live, whatever its guid: no worker reads that shard.
    """

    # Deleted ones included, until they are purged.
    actions: int
    live_rows: int
    # Rows of earlier lives, of actions that are gone, and in stray shards.
    stale_rows: int
    # How many actions break the invariant, and the first of them.
    without_row: int
    with_several_rows: int
    violations: Sequence[Violation]
    # Numbers of shards that hold rows though the installation has no such shard: a sign of damage.
    stray_shards: Sequence[int] = ()
    # How many of the actions were deleted, and are kept so that repeated calls are recognised.
    deleted: int = 0


class Store(Protocol):
    """One installation: four tables."""

    @property
    def shards(self) -> int:
        """The number of shards, fixed when the installation was made."""
        ...

    async def close(self) -> None:
        """Finish the calls that were accepted, and disconnect."""
        ...

    # The scheduler calls these.

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        """Write changes by users, each with its own precondition and its own outcome."""
        ...

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """The actions with these ids, in their order; tombstones included."""
        ...

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        """A page of actions in the order of the table's key, tombstones included, after the given id."""
        ...

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        """These actions, each with its live row if an advance has moved it after one time and until another.

        If it lies at another time than its action is planned for, it belongs to an attempt.
        """
        ...

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        """One action with its live row: in incoming_queue, or in processing_queue from its planned time on.

        A row of an attempt is looked for until the given time.
        """
        ...

    # The worker calls these.

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        """Take the free or stale lock that waited longest. None: there is none.

        A lock is stale if its last heartbeat is older than `stale_before_us`, or as far ahead of `now_us` as that is
        behind it: then the clock was set back since.

        A lock that somebody else takes, keeps or releases at this moment may be passed over, because nobody waits for
        a lock.
        """
        ...

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        """Keep locks; a heartbeat never goes back in time, unless the last one is stale because it lies ahead.

        Also returns the store's time.

        The number of waiting shards may be from shortly before or after, if others change locks at the same time.
        """
        ...

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        """Give locks back. A lock that this worker has lost stays as it is."""
        ...

    async def due(
        self,
        shard_id: int,
        *,
        incoming_from_us: int,
        incoming_limit: int,
        from_us: int,
        until_us: int,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> Page:
        """Rows that have come in since a time, and rows that come due between two times, with their actions.

        With `after`, an action's id and a guid, what comes due is read from behind that row at `from_us`.
        """
        ...

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        """Rows that have come in since a time and come due until another; oldest first.

        For early migration from a long incoming queue. Rows with old guids may be among them, which does no harm.
        """
        ...

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        """Move rows from incoming_queue to processing_queue, only those that still exist. Returns how many."""
        ...

    async def drop(self, rows: Sequence[Row]) -> None:
        """Delete rows of either queue whose guid was old in a snapshot: an old guid stays old."""
        ...

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        """The one write of workers: see `Advance`."""
        ...

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        """The versions of the actions with these ids, in their order. A cheap read for many ids."""
        ...

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        """Find rows with old guids in one page of processing_queue: from a time on, and after a row's key if given."""
        ...

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        """Return early, and True, if something may have come into the shard. A wake-up may be lost or superfluous."""
        ...

    # Tools call these; everybody reads the clock.

    async def now(self) -> int:
        """The store's clock, in microseconds."""
        ...

    async def check_writable(self) -> None:
        """Raise if this process may not write to the store. Changes nothing."""
        ...

    async def locks(self) -> list[LockInfo]: ...

    async def stats(self, now_us: int) -> Stats: ...

    async def audit(self, limit: int) -> Audit:
        """Check the invariant. `limit` bounds how many violations are named, not how many are counted."""
        ...
