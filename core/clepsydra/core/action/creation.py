"""A new action: what a creation is stored as."""

from clepsydra.core.action.events import Accepted
from clepsydra.core.action.spec import fill_in, timing_violations
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.core.ids import action_id_for_request
from clepsydra.core.tables import Action
from clepsydra.core.times import END_OF_TIME_US, set_us
from clepsydra.core.validation.rules import Violations
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, ScheduledAction, Spec, Status
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

FIRST_REVISION = 1

# How much of a guid an etag contains.
ETAG_GUID_LENGTH = 16

_ACCEPTED = Accepted()
_NO_STATUS = Status()


class ImpossibleNow(Exception):
    """The schedule has no occurrence from now on; `violations` name the fields."""

    def __init__(self, violations: Violations) -> None:
        super().__init__(violations)
        self.violations = violations


def action_id_of(request: CreateActionRequest, generated_id: str) -> str:
    """The id that a creation gives its action. A repeated call must find the same action, so its request id counts."""
    if request.action.meta.id:
        return request.action.meta.id
    return action_id_for_request(request.request_id) if request.request_id else generated_id


def new_action(given: ScheduledAction, action_id: str, guid: str, now_us: int) -> Action:
    """The action as it is stored. A function of these four alone, so that a repeated call gets the same answer.

    Raises ImpossibleNow.
    """
    spec = Spec()
    spec.CopyFrom(given.spec)
    status, at_us = accept(spec, now_us)
    meta = Meta(id=action_id, guid=guid, revision=FIRST_REVISION, etag=etag_of(guid, FIRST_REVISION))
    set_us(meta.create_time, now_us)
    set_us(meta.update_time, now_us)
    meta.labels.update(given.meta.labels)
    # Deterministic, so that labels are always encoded in the same order.
    encoded_meta = meta.SerializeToString(deterministic=True)
    return Action(action_id, guid, encoded_meta, spec.SerializeToString(), status.SerializeToString(), at_us)


def accept(spec: Spec, now_us: int) -> tuple[Status, int]:
    """Fill in the spec's defaults and plan its first occurrence. Raises ImpossibleNow."""
    given_start = fill_in(spec, now_us)
    status, at_us = step(spec, _NO_STATUS, _ACCEPTED, Moment(now_us))
    if at_us is None or at_us >= END_OF_TIME_US or status.state != action_pb2.SCHEDULED:
        raise ImpossibleNow(timing_violations(spec.schedule, given_start, now_us))
    return status, at_us


def etag_of(guid: str, revision: int) -> str:
    """No two states of an action that users brought about have the same guid and revision."""
    return f"{guid[:ETAG_GUID_LENGTH]}-{revision}"
