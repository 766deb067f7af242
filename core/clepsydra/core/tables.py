"""Rows of the tables as tuples: what planning takes and gives, and what a store reads and writes.

`clepsydra.store.port` says what a store does with them.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple


class Action(NamedTuple):
    """A row of `scheduled_actions`: three whole messages, encoded, and what queries need of them."""

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
    `incoming_queue`. Without one it changes meta and spec alone, and then nothing but the meta is compared, which every
    change by a user changes.
    """

    seen: Action | None
    action: Action
    shard_id: int | None
    # Chosen once per call, before the first try. A store refuses a call that is older than a call may be retried.
    created_at_us: int


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
    # When an advance last moved the row: the start of the attempt that it belongs to, if any.
    rescheduled_at_us: int | None = None


class LiveRow(NamedTuple):
    """A row with an action's current guid, and where it came from."""

    row: Row
    # When the change that made it came in, and when which sync iteration migrated it, if one did.
    added_at_us: int
    moved_by: str | None = None
    moved_at_us: int | None = None
    # Under which guid an advance last moved it; `row.rescheduled_at_us` says when.
    rescheduled_by: str | None = None


class LockRow(NamedTuple):
    """A row of `shard_locks`."""

    shard_id: int
    locked: bool
    guid: str
    locked_by: str
    processing_start_at_us: int
    heartbeat_at_us: int


class Inspected(NamedTuple):
    """An action, if there is one, and its live row, if it was found where it was looked for."""

    action: Action | None
    live: LiveRow | None


class Inspection(NamedTuple):
    """Actions with their live rows, and all shard locks, in one snapshot."""

    actions: Sequence[Inspected]
    locks: Sequence[LockRow]
    # The store's clock.
    now_us: int


class Due(NamedTuple):
    """A row and the action that it names. No action: the row's guid is old, or the action is gone."""

    row: Row
    action: Action | None


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


# The same tuples, made from plain ones in a third of the time. The plain tuple must have every field, in order.
make_action: Callable[[tuple[Any, ...]], Action] = partial(tuple.__new__, Action)
make_put: Callable[[tuple[Any, ...]], Put] = partial(tuple.__new__, Put)
make_row: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)
make_due: Callable[[tuple[Row, Action | None]], Due] = partial(tuple.__new__, Due)
make_advance: Callable[[tuple[Any, ...]], Advance] = partial(tuple.__new__, Advance)
