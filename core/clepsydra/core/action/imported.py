"""An action of another installation, with its status: what that may say, and what is stored of it.

Nothing is planned anew: state, planned time, occurrence, retries and counters go on as they stood. So the rule keeps
out whatever the state machine could not have written.
"""

import re
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core import limits
from clepsydra.core.action.creation import etag_of
from clepsydra.core.action.memory import take_attempts
from clepsydra.core.action.occurrence import carry_over, keep_key
from clepsydra.core.action.spec import fill_in
from clepsydra.core.action.state_machine import ENDED, LIVE
from clepsydra.core.ids import GUID_LENGTH
from clepsydra.core.times import END_OF_TIME_US, YEAR_US, set_us, us_of
from clepsydra.core.validation.rules import (
    VALID,
    Rule,
    Violations,
    any_value,
    both,
    choice,
    duration_between,
    length,
    message,
    number,
    repeated,
    text,
    time_in_range,
    violation,
)
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, ScheduledAction, State, Status

_GUID = re.compile(rf"[0-9a-f]{{{GUID_LENGTH}}}")
_STATES = LIVE | ENDED | {action_pb2.PAUSED}

# Counters rise, and sums of them must still fit into their fields.
_COUNT_MAX = {FieldDescriptor.CPPTYPE_UINT32: 10**9, FieldDescriptor.CPPTYPE_UINT64: 2**62}
_ENTRIES_MAX = 100

# A field of another type than these is named here: `_rule_of` has no rule for it.
_RULES_OF_TYPES: dict[int, Rule] = {
    FieldDescriptor.CPPTYPE_STRING: length(limits.ERROR_TEXT_LENGTH, "characters"),
    FieldDescriptor.CPPTYPE_BOOL: any_value,
    **{kind: number(0, most) for kind, most in _COUNT_MAX.items()},
}
_RULES_OF_MESSAGES: dict[str, Rule] = {
    Timestamp.DESCRIPTOR.full_name: time_in_range,
    Duration.DESCRIPTOR.full_name: duration_between(0, 100 * YEAR_US),
}
_RULES_OF_FIELDS: dict[str, Rule] = {
    # The end of time, where a paused action is planned, is no time that a user may give.
    "clepsydra.v1.Status.scheduled_time": any_value,
    # Never sent to anyone, and never taken from anyone.
    "clepsydra.v1.Status.removable_time": any_value,
    # It becomes a header of HTTP requests.
    "clepsydra.v1.Occurrence.idempotency_key": text(r"[\x21-\x7e]{1,255}", "1 to 255 characters of visible ASCII"),
}


def _rule_of(field: Any) -> Rule:
    """The rule of a field of the status, from its type: so a new field has one from the start."""
    if field.full_name in _RULES_OF_FIELDS:
        return _RULES_OF_FIELDS[field.full_name]
    if field.message_type is not None:
        rule = _RULES_OF_MESSAGES.get(field.message_type.full_name) or _rule_of_message(field.message_type)
    elif field.enum_type is not None:
        rule = choice({value.name: value.number for value in field.enum_type.values})
    else:
        rule = _RULES_OF_TYPES[field.cpp_type]
    return repeated(rule, _ENTRIES_MAX) if field.is_repeated else rule


def _rule_of_message(descriptor: Any) -> Rule:
    return message(GetMessageClass(descriptor), {field.name: _rule_of(field) for field in descriptor.fields})


_NOT_A_STATE = violation(f"must be one of {', '.join(State.Name(state) for state in sorted(_STATES))}", "state")
_NO_SCHEDULED_TIME = violation("is required", "scheduled_time")
_NO_OCCURRENCE_TIME = violation("is required of an action that has not ended", "occurrence_time")
_PLANNED_TOO_EARLY = violation("must not lie before occurrence_time", "scheduled_time")
_NO_FAILED_ATTEMPT = violation("must have a failed or an interrupted attempt if the state is RETRYING", "occurrence")


def _makes_sense(status: Status) -> Violations:
    if status.state not in _STATES:
        return _NOT_A_STATE
    if status.state not in ENDED and not status.HasField("occurrence_time"):
        return _NO_OCCURRENCE_TIME
    if status.state == action_pb2.PAUSED:
        return VALID
    if not status.HasField("scheduled_time"):
        return _NO_SCHEDULED_TIME
    wrong_time = time_in_range(status.scheduled_time)
    if wrong_time:
        return violation(wrong_time[0].description, "scheduled_time")
    if status.state in LIVE and us_of(status.scheduled_time) < us_of(status.occurrence_time):
        return _PLANNED_TOO_EARLY
    occurrence = status.occurrence
    if status.state == action_pb2.RETRYING and not occurrence.failed_attempts + occurrence.interrupted_attempts:
        return _NO_FAILED_ATTEMPT
    return VALID


STATUS_RULE = both(_rule_of_message(Status.DESCRIPTOR), _makes_sense)


def imported_action(given: ScheduledAction, guid: str, revision: int, now_us: int) -> ScheduledAction:
    """The action as it goes on here, in a life of its own. `given` must be valid."""
    action = ScheduledAction(spec=given.spec, status=given.status)
    meta = Meta(id=given.meta.id, guid=guid, revision=revision, etag=etag_of(guid, revision), labels=given.meta.labels)
    set_us(meta.create_time, us_of(given.meta.create_time) if given.meta.HasField("create_time") else now_us)
    set_us(meta.update_time, now_us)
    action.meta.CopyFrom(meta)
    fill_in(action.spec, now_us)
    status = action.status
    status.ClearField("removable_time")
    take_attempts(action.spec, status)
    # A time in nanoseconds would differ from the column that repeats it.
    at_us = END_OF_TIME_US if status.state == action_pb2.PAUSED else us_of(status.scheduled_time)
    set_us(status.scheduled_time, at_us)
    if _GUID.fullmatch(given.meta.guid):
        # Work that may have begun there goes on here under the key that it had.
        if at_us <= now_us:
            carry_over(status, given.meta.guid, now_us)
        else:
            keep_key(status, given.meta.guid)
    return action
