"""Repairs what the audit finds: gives every action that has no live row, or several, one row again, and drops old rows.

It needs no call of its own in the port. A broken action is given a new life, by the same compare-and-set as a change by
a user: its status stays, its guid is new, and one row is appended for the time that its status plans. Whatever rows it
had are old from then on, and so is whatever attempt was in flight: its outcome is not accepted, and it is begun again.
So a repair can run against a live installation, late, twice, or beside another repair, and breaks nothing that is
whole.

    plan = await inspect(store)                  # what would be done
    async for done in repair(store, ids):        # does it, a slice at a time
        ...
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.ids import Ids
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.moments import END_OF_TIME_US, set_us
from clepsydra.store.port import Action, Audit, Mark, Put, PutOutcome, Row, Store, Violation
from clepsydra.v1.action_pb2 import Meta, Status

_SLICE = 100
# So many broken actions are named by one audit; when they are repaired, the next audit names the next ones.
_NAMED = 10_000


class Repaired(NamedTuple):
    """What one slice did."""

    # Actions that have a new life and one row.
    actions: int = 0
    # Actions that were changed by somebody else meanwhile: they are whole again, or the next audit tells.
    changed: int = 0
    # Old rows that were dropped.
    rows: int = 0


async def inspect(store: Store, named: int = _NAMED) -> Audit:
    """What a repair would do: a new life for each violation, and the removal of the stale rows. Nothing is written."""
    return await store.audit(named)


async def repair(store: Store, ids: Ids, slice_size: int = _SLICE) -> AsyncIterator[Repaired]:
    """Repair everything, a slice at a time: the caller decides how long to pause between slices, and when to stop."""
    while violations := (await store.audit(_NAMED)).violations:
        repaired = 0
        for start in range(0, len(violations), slice_size):
            done = await _give_new_lives(store, ids, violations[start : start + slice_size])
            repaired += done.actions
            yield done
        if not repaired:
            # Everything was changed by others while we looked: what is left of it, if anything, is for another run.
            break
    async for dropped in _drop_stale(store, ids, slice_size):
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


async def _drop_stale(store: Store, ids: Ids, slice_size: int) -> AsyncIterator[Repaired]:
    mark = Mark(ids.guid(), await store.now())
    for shard_id in range(store.shards):
        async for stale in _stale_pages(store, shard_id, slice_size):
            await store.migrate([], stale, mark)
            yield Repaired(rows=len(stale))


async def _stale_pages(store: Store, shard_id: int, slice_size: int) -> AsyncIterator[Sequence[Row]]:
    """The old rows of a shard, in both queues."""
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
        if stale := [due.row for due in page.incoming if due.action is None]:
            yield stale
        if len(page.incoming) < limit:
            break
        # Rows of one moment may fill a whole page: then only a longer one gets past them.
        last_us = page.incoming[-1].row.at_us
        from_us, limit = last_us, limit if last_us > from_us else 2 * limit
    after = None
    while True:
        rows = await store.stale(shard_id, after, 0, slice_size)
        if rows.stale:
            yield rows.stale
        after = rows.next_after
        if after is None:
            return


def described(violations: Iterable[Violation]) -> list[str]:
    """What is to be done about each violation, in a sentence."""
    return [
        f"{violation.action_id}: has {len(violation.rows) or 'no'} live row{'s' * (len(violation.rows) > 1)}, "
        "and would be given a new life with one"
        for violation in violations
    ]
