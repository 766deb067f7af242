"""Repairs what an audit found: an action with no live row, or more than one, gets one row; stale rows are dropped.

A repair needs no method of its own in the port. A broken action gets a new life by the same compare-and-set as a change
by a user: the status stays, the guid is new, and one row is appended for the time that the status plans. All its
earlier rows are stale from then on, and the outcome of an attempt in flight is not accepted; another attempt begins,
with the same idempotency key. So a repair can run against a live installation, late, twice, or beside another repair,
and leaves sound actions alone.

    plan = plan_repair(await store.audit(20))                   # what a repair would do
    async with aclosing(repair(store, ids)) as slices:          # does it, one slice at a time
        async for done in slices:
            ...
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.action.occurrence import carry_over
from clepsydra.core.ids import Ids
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.times import END_OF_TIME_US, set_us
from clepsydra.store.port import Action, Audit, Put, PutOutcome, Row, Store, Violation
from clepsydra.v1.action_pb2 import Meta, Status

_SLICE_SIZE_DEFAULT = 100
# One audit names at most this many broken actions. The audit after their repair names the next ones.
_VIOLATIONS_PER_AUDIT = 100_000


class Plan(NamedTuple):
    """What a repair would do if nothing else changed the store."""

    # Actions that would get a new life with one row.
    actions: int
    # Rows that would be removed: stale rows, rows in shards that do not exist, all rows of an action with two or more.
    rows: int


class Repaired(NamedTuple):
    """What one slice did."""

    # Actions that got a new life with one row.
    actions: int = 0
    # Actions that a user or a worker changed meanwhile. They are sound again, or the next audit names them.
    changed: int = 0
    # Stale rows that were dropped.
    rows: int = 0
    # Rows that were read to find the stale ones.
    seen: int = 0

    def plus(self, other: "Repaired") -> "Repaired":
        """
        >>> Repaired(actions=2, rows=1).plus(Repaired(rows=3))
        Repaired(actions=2, changed=0, rows=4, seen=0)
        """
        return Repaired(*map(sum, zip(self, other, strict=True)))


def plan_repair(audit: Audit) -> Plan:
    """
    >>> plan_repair(Audit(actions=4, live_rows=4, stale_rows=5, without_row=1, with_several_rows=1, violations=[]))
    Plan(actions=2, rows=7)
    """
    broken = audit.without_row + audit.with_several_rows
    return Plan(broken, audit.stale_rows + audit.live_rows - (audit.actions - broken))


async def repair(store: Store, ids: Ids, slice_size: int = _SLICE_SIZE_DEFAULT) -> AsyncGenerator[Repaired, None]:
    """Repair everything, one slice at a time: the caller decides how long to pause between slices, and when to stop."""
    while (audit := await store.audit(_VIOLATIONS_PER_AUDIT)).violations:
        repaired = 0
        for start in range(0, len(audit.violations), slice_size):
            done = await _repair_actions(store, ids, audit.violations[start : start + slice_size])
            repaired += done.actions
            yield done
        if not repaired:
            # Somebody else changed all of these actions. If any is still broken, another repair finds it.
            break
    if audit.stale_rows:
        async with aclosing(_drop_stale(store, audit.stray_shards, slice_size)) as dropping:
            async for dropped in dropping:
                yield dropped


async def _repair_actions(store: Store, ids: Ids, violations: Sequence[Violation]) -> Repaired:
    """Give each action a new life, unless it has another guid by now."""
    actions = await store.get([violation.action_id for violation in violations])
    now_us = await store.now()
    puts = [
        Put(action, _new_life(action, ids.guid(), now_us), ids.shard(store.shards), now_us)
        for action, violation in zip(actions, violations, strict=True)
        if action is not None and action.guid == violation.guid
    ]
    results = await store.put(puts)
    done = sum(result.outcome is PutOutcome.DONE for result in results)
    return Repaired(actions=done, changed=len(violations) - done)


def _new_life(action: Action, guid: str, now_us: int) -> Action:
    """The same action under a new guid, with its status."""
    try:
        meta, status = Meta.FromString(action.meta), Status.FromString(action.status)
    except DecodeError:
        # The messages stay as they are: the columns are enough to give the action a row, and to delete it.
        return action._replace(guid=guid)
    carry_over(status, action.guid, now_us)
    meta.guid = guid
    # As in every life that replaces another: the call that made the earlier one may still be retried.
    set_us(status.removable_time, now_us + DELETED_RETENTION_MIN_US)
    return action._replace(guid=guid, meta=meta.SerializeToString(), status=status.SerializeToString())


class _QueuePage(NamedTuple):
    """One page of a queue: its stale rows, and the number of all its rows."""

    stale: Sequence[Row]
    seen: int


async def _drop_stale(store: Store, stray_shards: Sequence[int], slice_size: int) -> AsyncGenerator[Repaired, None]:
    """Read both queues of every shard, page by page, and drop the stale rows of each page."""
    readers = [
        read(store, shard_id, slice_size)
        for shard_id in range(store.shards)
        for read in (_incoming_pages, _processing_pages)
    ]
    readers += [_stray_pages(store, shard_id, slice_size) for shard_id in stray_shards]
    for reader in readers:
        async with aclosing(reader) as pages:
            async for page in pages:
                if page.stale:
                    await store.drop(page.stale)
                yield Repaired(rows=len(page.stale), seen=page.seen)


async def _incoming_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_QueuePage, None]:
    """The incoming_queue of a shard."""
    from_us, limit = 0, slice_size
    while True:
        page = await store.due(
            shard_id,
            incoming_from_us=from_us,
            incoming_limit=limit,
            from_us=END_OF_TIME_US,
            until_us=END_OF_TIME_US,
            limit=0,
        )
        yield _QueuePage([due.row for due in page.incoming if due.action is None], len(page.incoming))
        if len(page.incoming) < limit:
            return
        # If rows with one time fill a whole page, only a longer page reaches the rows behind them.
        last_us = page.incoming[-1].row.at_us
        from_us, limit = last_us, slice_size if last_us > from_us else 2 * limit


async def _processing_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_QueuePage, None]:
    """The processing_queue of a shard."""
    after = None
    while True:
        page = await store.stale(shard_id, after, 0, slice_size)
        yield _QueuePage(page.stale, page.seen)
        after = page.next_after
        if after is None:
            return


async def _stray_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_QueuePage, None]:
    """Both queues of a shard that does not exist. None of its rows is live: their actions have other rows by now."""
    while True:
        page = await store.due(
            shard_id,
            incoming_from_us=0,
            incoming_limit=slice_size,
            from_us=0,
            until_us=END_OF_TIME_US,
            limit=slice_size,
        )
        rows = [due.row for due in (*page.incoming, *page.due)]
        if not rows:
            return
        yield _QueuePage(rows, len(rows))
