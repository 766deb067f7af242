"""The action codec: from a stored row to messages, and back."""

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.times import set_us, timestamp, us_of
from clepsydra.scheduler.errors import Damaged
from clepsydra.store.port import Action
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, Meta, ScheduledAction, Status


class DecodedAction(NamedTuple):
    # As users see it: without `meta.applied_requests` and `status.removable_time`.
    action: ScheduledAction
    applied: tuple[AppliedRequest, ...]

    @property
    def is_deleted(self) -> bool:
        return self.action.status.state == action_pb2.DELETED


def decode(stored: Action) -> DecodedAction:
    """Raises Damaged."""
    action = ScheduledAction()
    try:
        action.meta.ParseFromString(stored.meta)
        action.spec.ParseFromString(stored.spec)
        action.status.ParseFromString(stored.status)
    except DecodeError as error:
        raise Damaged(stored.action_id) from error
    applied = tuple(action.meta.applied_requests)
    action.meta.ClearField("applied_requests")
    action.status.ClearField("removable_time")
    return DecodedAction(action, applied)


def encode(action: ScheduledAction) -> Action:
    """The row of an action, without the fields that users do not see: the next two functions add those."""
    meta, status = action.meta, action.status
    return Action(
        meta.id,
        meta.guid,
        meta.SerializeToString(),
        action.spec.SerializeToString(),
        status.SerializeToString(),
        us_of(status.scheduled_time),
    )


def with_applied_requests(action: Action, applied: Sequence[AppliedRequest]) -> Action:
    # Concatenated protobuf messages merge: this appends the applied requests.
    return action._replace(meta=action.meta + Meta(applied_requests=applied).SerializeToString())


def with_removable_time(action: Action, removable_us: int) -> Action:
    """The same row, with the time before which the action may not be removed."""
    removable = Status(removable_time=timestamp(removable_us))
    return action._replace(status=action.status + removable.SerializeToString())


def decode_keys(stored: Action) -> DecodedAction:
    """What the columns say of an action whose messages cannot be decoded: enough to show it and to delete it."""
    action = ScheduledAction()
    action.meta.id = stored.action_id
    action.meta.guid = stored.guid
    action.status.state = action_pb2.SCHEDULED
    action.status.reason = "what is stored of this action cannot be decoded"
    set_us(action.status.scheduled_time, stored.scheduled_at_us)
    return DecodedAction(action, ())


def decode_or_keys(stored: Action) -> DecodedAction:
    try:
        return decode(stored)
    except Damaged:
        return decode_keys(stored)
