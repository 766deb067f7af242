"""What the store keeps of an action, and the messages that it stands for."""

from collections.abc import Sequence
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.moments import set_us, timestamp, us_of
from clepsydra.scheduler.errors import Damaged
from clepsydra.store.port import Action
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, Meta, ScheduledAction, Status


class Record(NamedTuple):
    """A stored action, decoded."""

    # As its owner may see it: without `meta.applied_requests` and `status.removable_time`.
    action: ScheduledAction
    applied: tuple[AppliedRequest, ...]

    @property
    def is_deleted(self) -> bool:
        return self.action.status.state == action_pb2.DELETED


def decoded(stored: Action) -> Record:
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
    return Record(action, applied)


def encoded(action: ScheduledAction) -> Action:
    """What the store keeps of an action, but for what its owner may not see: that is added by the next two."""
    meta, status = action.meta, action.status
    return Action(
        meta.id,
        meta.guid,
        meta.SerializeToString(),
        action.spec.SerializeToString(),
        status.SerializeToString(),
        us_of(status.scheduled_time),
    )


def remembered(action: Action, applied: Sequence[AppliedRequest]) -> Action:
    """The same, with the calls that it remembers. Of encoded messages, one after the other is both merged."""
    return action._replace(meta=action.meta + Meta(applied_requests=applied).SerializeToString())


def removable_from(action: Action, removable_us: int) -> Action:
    """The same, with the time before which it may not vanish."""
    removable = Status(removable_time=timestamp(removable_us))
    return action._replace(status=action.status + removable.SerializeToString())


def salvaged(stored: Action) -> Record:
    """What the columns alone tell of an action whose messages cannot be read: enough to show it and to delete it."""
    action = ScheduledAction()
    action.meta.id = stored.action_id
    action.meta.guid = stored.guid
    action.status.state = action_pb2.SCHEDULED
    action.status.reason = "what is stored of this action cannot be decoded"
    set_us(action.status.scheduled_time, stored.scheduled_at_us)
    return Record(action, ())
