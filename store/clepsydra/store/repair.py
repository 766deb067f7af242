"""Repairs what the audit finds: gives every action that has no live row, or several, one row again, and drops old rows.

It needs no call of its own in the port. A broken action is given a new life, by the same compare-and-set as a change by
a user: its status stays, its guid is new, and one row is appended for the time that its status plans. Whatever rows it
had are old from then on, and so is whatever attempt was in flight: its outcome is not accepted, and it is begun again.
So a repair can run against a live installation, late, twice, or beside another repair, and breaks nothing that is
whole.

    plan = planned(await store.audit(20))                       # what would be done
    async with aclosing(repair(store, ids)) as slices:          # does it, a slice at a time
        async for done in slices:
            ...
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.ids import Ids
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.times import END_OF_TIME_US, set_us
from clepsydra.store.port import Action, Audit, Put, PutOutcome, Row, Store, Violation
from clepsydra.v1.action_pb2 import Meta, Status

_SLICE = 100
# So many broken actions are named by one audit; when they are repaired, the next audit names the next ones.
_NAMED = 100_000


class Plan(NamedTuple):
    """What a repair would do, were nothing else to happen meanwhile."""

    # Actions that would be given a new life, and one row with it.
    actions: int
    # Rows that would be removed: old ones, stray ones, and all that an action with several has now.
    rows: int


class Repaired(NamedTuple):
    """What one slice did."""

    # Actions that have a new life and one row.
    actions: int = 0
    # Actions that were changed by somebody else meanwhile: they are whole again, or the next audit tells.
    changed: int = 0
    # Old rows that were dropped.
    rows: int = 0
    # Rows that were looked at for that.
    seen: int = 0

    def plus(self, other: "Repaired") -> "Repaired":
        """
        >>> Repaired(actions=2, rows=1).plus(Repaired(rows=3))
        Repaired(actions=2, changed=0, rows=4, seen=0)
        """
        return Repaired(*map(sum, zip(self, other, strict=True)))


def planned(audit: Audit) -> Plan:
    """
    >>> planned(Audit(actions=4, live_rows=4, stale_rows=5, without_row=1, with_several_rows=1, violations=[]))
    Plan(actions=2, rows=7)
    """
    broken = audit.without_row + audit.with_several_rows
    return Plan(broken, audit.stale_rows + audit.live_rows - (audit.actions - broken))


async def repair(store: Store, ids: Ids, slice_size: int = _SLICE) -> AsyncGenerator[Repaired, None]:
    """Repair everything, a slice at a time: the caller decides how long to pause between slices, and when to stop."""
    while (audit := await store.audit(_NAMED)).violations:
        repaired = 0
        for start in range(0, len(audit.violations), slice_size):
            done = await _give_new_lives(store, ids, audit.violations[start : start + slice_size])
            repaired += done.actions
            yield done
        if not repaired:
            # Everything was changed by others while we looked: what is left of it, if anything, is for another run.
            break
    if audit.stale_rows:
        async with aclosing(_drop_stale(store, ids, audit.stray_shards, slice_size)) as dropping:
            async for dropped in dropping:
                yield dropped


async def _give_new_lives(store: Store, ids: Ids, violations: Sequence[Violation]) -> Repaired:
    found = await store.get([violation.action_id for violation in violations])
    now_us = await store.now()
    puts = [
        Put(action, _new_life(action, ids.guid(), now_us), ids.shard(store.shards), now_us)
        for action, violation in zip(found, violations, strict=True)
        if action is not None and action.guid == violation.guid
    ]
    results = await store.put(puts)
    done = sum(result.outcome is PutOutcome.DONE for result in results)
    return Repaired(actions=done, changed=len(violations) - done)


def _new_life(action: Action, guid: str, now_us: int) -> Action:
    """The action in a life that goes on where the old one was."""
    try:
        meta, status = Meta.FromString(action.meta), Status.FromString(action.status)
    except DecodeError:
        # What cannot be read stays as it is: its columns are enough to give it a row, and to delete it.
        return action._replace(guid=guid)
    meta.guid = guid
    # As with every life that replaces another: the call that made the old one may still be retried.
    set_us(status.removable_time, now_us + DELETED_RETENTION_MIN_US)
    return action._replace(guid=guid, meta=meta.SerializeToString(), status=status.SerializeToString())


class _Found(NamedTuple):
    """What one page of a queue holds: rows to be dropped, among so many that were looked at."""

    surplus: Sequence[Row]
    seen: int


async def _drop_stale(
    store: Store, ids: Ids, stray_shards: Sequence[int], slice_size: int
) -> AsyncGenerator[Repaired, None]:
    walks = [walk(store, n, slice_size) for n in range(store.shards) for walk in (_incoming_pages, _processing_pages)]
    walks += [_stray_pages(store, shard_id, slice_size) for shard_id in stray_shards]
    for walk in walks:
        async with aclosing(walk) as pages:
            async for found in pages:
                if found.surplus:
                    await store.drop(found.surplus)
                yield Repaired(rows=len(found.surplus), seen=found.seen)


async def _incoming_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_Found, None]:
    """A shard's incoming_queue."""
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
        yield _Found([due.row for due in page.incoming if due.action is None], len(page.incoming))
        if len(page.incoming) < limit:
            return
        # Rows of one moment may fill a whole page: then only a longer one gets past them.
        last_us = page.incoming[-1].row.at_us
        from_us, limit = last_us, slice_size if last_us > from_us else 2 * limit


async def _processing_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_Found, None]:
    """A shard's processing_queue."""
    after = None
    while True:
        page = await store.stale(shard_id, after, 0, slice_size)
        yield _Found(page.stale, page.seen)
        after = page.next_after
        if after is None:
            return


async def _stray_pages(store: Store, shard_id: int, slice_size: int) -> AsyncGenerator[_Found, None]:
    """Both queues of a shard that is not there: no row of it is live, and its actions have other rows by now."""
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
        yield _Found(rows, len(rows))
