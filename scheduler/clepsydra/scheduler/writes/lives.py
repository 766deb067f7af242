"""What mutations have in common: a life of an action, its revisions, and the put that writes them.

A change either starts a new life, with a new guid and a new row, or goes on in the same one.
"""

from typing import NamedTuple

from clepsydra.core.action.creation import etag_of
from clepsydra.core.action.events import Event
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.times import set_us
from clepsydra.scheduler.codec import DecodedAction, encode, with_removable_time
from clepsydra.scheduler.errors import EtagMismatch
from clepsydra.scheduler.writes.idempotency import Applied, IdempotencyKey, remember
from clepsydra.store.port import Action, Put
from clepsydra.v1.action_pb2 import AppliedRequest, Meta, ScheduledAction


class Stamp(NamedTuple):
    """Chosen once per call: however often it is tried, it starts the same life."""

    guid: str
    shard_id: int
    now_us: int


# The response, encoded, and what must be written first, if anything.
Plan = tuple[Action, Put | None]


def check_etag(etag: str, stored: DecodedAction) -> None:
    if etag and etag != stored.action.meta.etag:
        raise EtagMismatch(stored.action.meta.id)


def next_revision(meta: Meta, stamp: Stamp) -> None:
    meta.revision += 1
    meta.etag = etag_of(meta.guid, meta.revision)
    set_us(meta.update_time, stamp.now_us)


def new_guid(meta: Meta, stamp: Stamp) -> None:
    meta.guid = stamp.guid
    meta.etag = etag_of(stamp.guid, meta.revision)


def apply_event(action: ScheduledAction, event: Event, now_us: int) -> None:
    """Apply an event to the action's status."""
    status, at_us = step(action.spec, action.status, event, Moment(now_us))
    action.status.CopyFrom(status)
    if at_us is None:
        # Only a worker removes an action: its row comes due at once, and a worker purges it.
        set_us(action.status.scheduled_time, now_us)


def new_life(
    response: Action,
    revision: int,
    key: IdempotencyKey | None,
    earlier: Applied,
    stamp: Stamp,
    seen: Action | None,
    plan_effect: ScheduledAction.PlanEffect = ScheduledAction.PLAN_EFFECT_UNSPECIFIED,
    *,
    cancelled_attempt: bool = False,
) -> Put:
    row = remember(key, response, revision, earlier, stamp.now_us, plan_effect, cancelled_attempt=cancelled_attempt)
    if seen is not None:
        # If the action were removed before the last retry of the call that made an earlier life, that call would create
        # the earlier life again.
        row = with_removable_time(row, stamp.now_us + DELETED_RETENTION_MIN_US)
    return Put(seen, row, stamp.shard_id, stamp.now_us)


def same_life(
    response: Action,
    revision: int,
    key: IdempotencyKey | None,
    earlier: Applied,
    stamp: Stamp,
    seen: Action,
    plan_effect: ScheduledAction.PlanEffect,
) -> Put:
    """A change of neither the schedule nor the target keeps guid, status and row."""
    row = remember(key, response, revision, earlier, stamp.now_us, plan_effect)
    return Put(seen, seen._replace(meta=row.meta, spec=row.spec), None, stamp.now_us)


def response_to_repetition(applied: AppliedRequest, stored: DecodedAction) -> Action:
    """The action, if the life that the first call made goes on; otherwise the identity of that life."""
    if stored.action.meta.guid == applied.guid:
        return encode(stored.action)
    identity = ScheduledAction()
    meta = identity.meta
    meta.id = stored.action.meta.id
    meta.guid = applied.guid
    meta.revision = applied.revision
    meta.etag = applied.etag
    meta.update_time.CopyFrom(applied.time)
    return encode(identity)
