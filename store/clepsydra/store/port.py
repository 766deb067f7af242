"""The port: everything that schedulers, workers and tools ask of a store.

Each method is one transaction and speaks in batches. Each is safe to replay, at once or late: a replayed call finds
its own marks (a guid, a lock guid, a `Mark`) and reports what the first one did, or finds that the world moved on and
does nothing. A batch names an action at most once. Every store passes `tests/conformance`; the memory store is the
specification in the plainest code.
"""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, Protocol


class Action(NamedTuple):
    """A row of `scheduled_actions`: three whole messages, and what queries need of them."""

    action_id: str
    guid: str
    meta: bytes
    spec: bytes
    status: bytes
    scheduled_at_us: int


class Put(NamedTuple):
    """A change by a user.

    It takes effect if the action still is as it was `seen`: same guid, same `status_scheduled_at`, same meta; or, where
    nothing was seen, if it is absent. With `shard_id` it starts a new life and appends that life's row to
    `incoming_queue`; without one it changes the meta alone, and then nothing but the meta is compared.
    """

    seen: Action | None
    action: Action
    shard_id: int | None
    # Chosen once per call, before the first try. A store refuses a call that is older than a call may be retried.
    created_at_us: int


class PutOutcome(Enum):
    DONE = "done"
    # The action is not as it was seen: `current` tells how it is.
    CONFLICT = "conflict"
    # The call is older than the longest time for which a call may be retried.
    TOO_LATE = "too late"


class PutResult(NamedTuple):
    outcome: PutOutcome
    current: Action | None = None


class Queue(Enum):
    INCOMING = "incoming_queue"
    PROCESSING = "processing_queue"


class Row(NamedTuple):
    """A row of one of the two queues. The first five fields are its key, and its key is a fencing token."""

    queue: Queue
    shard_id: int
    # `created_at` in incoming_queue, `scheduled_at` in processing_queue.
    at_us: int
    action_id: str
    guid: str
    # When it comes due.
    scheduled_at_us: int
    # When the row was last rescheduled by an advance: the start of the attempt that it belongs to, if any.
    rescheduled_at_us: int | None = None


class Mark(NamedTuple):
    """Who did it, unique per call: what lets a replay recognise its own work."""

    sync_guid: str
    at_us: int


class Due(NamedTuple):
    """A row and the action that it names. No action: the row's guid is old, or the action is gone."""

    row: Row
    action: Action | None


class Page(NamedTuple):
    """What a worker sees when it looks at a shard, in one snapshot."""

    # From `incoming_queue`, oldest first. Actions come along for all of them.
    incoming: Sequence[Due]
    # From `processing_queue`, what is due until the horizon, earliest first.
    due: Sequence[Due]


class Advance(NamedTuple):
    """Move one row to its next time, if it still is where it was seen and its guid is the action's guid.

    - `to_us=None` removes the row and its action.
    - `seen_scheduled_at_us` must be the action's `status_scheduled_at`; None only for an ordinary begin.
    - `status`, with the `status_scheduled_at_us` that it plans, is written to the action where the transition says so.
    """

    row: Row
    to_us: int | None
    seen_scheduled_at_us: int | None = None
    status: bytes | None = None
    status_scheduled_at_us: int | None = None


class AdvanceOutcome(Enum):
    DONE = "done"
    # The row existed with an old guid, and was deleted.
    STALE = "stale"
    # The row is not there, or its action has moved on: nothing was done.
    GONE = "gone"
    # An earlier try of this very call may have done it; nobody can tell any more.
    UNKNOWN = "unknown"


class Lock(NamedTuple):
    """A shard lock that was acquired: the guid is the proof."""

    shard_id: int
    guid: str


class Acquired(NamedTuple):
    lock: Lock
    # The store's clock, by which the worker disciplines its own.
    now_us: int


class Heartbeat(NamedTuple):
    """What a heartbeat found."""

    # The shards whose locks are no longer ours.
    lost: frozenset[int]
    # How many shards wait for a worker: their lock is free, or its heartbeat is too old.
    waiting: int
    now_us: int


class StalePage(NamedTuple):
    """Rows with old guids, found while looking at a page of `processing_queue` beyond the horizon."""

    stale: Sequence[Row]
    # Where to go on; None at the end of the shard.
    next_after: tuple[int, str, str] | None
    seen: int


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


class Stats(NamedTuple):
    """Counts over the whole installation."""

    actions: int
    incoming_rows: int
    processing_rows: int
    due_rows: int
    earliest_us: int | None
    shards: int
    locked_shards: int


class Violation(NamedTuple):
    """An action that breaks the invariant: `rows` are its rows with its current guid."""

    action_id: str
    guid: str
    rows: Sequence[Row]


class Audit(NamedTuple):
    """The invariant, checked on a consistent snapshot: every action has exactly one live row.

    A row in a shard that the installation does not have is not live, whatever its guid: no worker ever looks there.
    """

    actions: int
    live_rows: int
    # Rows of earlier lives, of actions that are gone, and in stray shards.
    stale_rows: int
    # How many actions break it, and the first of them.
    without_row: int
    with_several_rows: int
    violations: Sequence[Violation]
    # Numbers of shards that hold rows though the installation has no such shard; none, unless somebody damaged it.
    stray_shards: Sequence[int] = ()


class Store(Protocol):
    """One installation: four tables."""

    @property
    def shards(self) -> int:
        """The number of shards, fixed when the installation was made."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of the store."""
        ...

    # What the scheduler calls.

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        """Carry out changes by users, each with its own precondition and its own outcome."""
        ...

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        """The actions with these ids, in their order; tombstones included."""
        ...

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        """A page of actions in the order of the table's key, tombstones included, after the given id."""
        ...

    # What the worker calls.

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        """Take, of all locks that are free or stale, the one that waited longest. None: there is none.

        A lock that somebody else takes, keeps or releases at this moment may be passed over: locks give order and
        cheapness, and nobody waits for them.
        """
        ...

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        """Keep locks; a heartbeat never goes back in time. Also tells the store's time.

        How many shards wait may be told as of a moment before or after, where others change locks at the same time.
        """
        ...

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        """Give locks back. Those that are no longer ours are left alone."""
        ...

    async def due(
        self, shard_id: int, *, incoming_from_us: int, incoming_limit: int, from_us: int, until_us: int, limit: int
    ) -> Page:
        """What has come in since a time, and what comes due between two times, with the actions it names."""
        ...

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        """Of the rows that have come in since a time, those that come due until another; oldest first.

        For a shard where so much waits to be let through that something would come due behind it. Rows with old guids
        may be among them: to let one through does no harm.
        """
        ...

    async def migrate(self, rows: Sequence[Row], stale: Sequence[Row], mark: Mark) -> int:
        """Move rows from incoming_queue to processing_queue, only those that still exist, and drop stale ones.

        `stale` may name rows of either queue whose guid was old in a snapshot: an old guid stays old, so no
        condition is needed. Returns how many rows were moved.
        """
        ...

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        """The one write of workers: see `Advance`."""
        ...

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        """Look at one page of processing_queue for rows with old guids: from a time, and after a row's key if given."""
        ...

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        """Return early, and True, if something may have come into the shard: a hint, never the truth."""
        ...

    # What tools call, and the clock.

    async def now(self) -> int:
        """The store's clock, in microseconds."""
        ...

    async def locks(self) -> list[LockInfo]: ...

    async def stats(self, now_us: int) -> Stats: ...

    async def audit(self, limit: int) -> Audit:
        """Check the invariant; `limit` bounds how many violations are named, not how many are counted."""
        ...
