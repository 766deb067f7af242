"""The usual creation, in few steps.

Most actions are to be run once by a handler, and leave all else to the defaults. Such a request is recognised without
a look at what it does not say: it is read as messages that have the usual fields only, and if nothing is lost by that,
nothing else is in it, neither a field that takes more thought nor one that nobody knows. For hundreds of requests that
is one call. What is left to check are a few values, and what is stored is put together from encoded parts
(`core/usual.py`).

All that is not usual, and all that is wrong, goes the general way, by the rules and the state machine, and is
explained there. `tests/scheduler/test_usual.py` holds both ways to the same results; docs/decisions/0007 says why
there are two.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from clepsydra.core.moments import END_OF_TIME_US, duration_us, timestamp, us_of
from clepsydra.core.usual import encoded_time, planned, spec_of
from clepsydra.core.validation import CONTENT_TYPE, DELAY, HANDLER_NAME, ID, LABELS, PAYLOAD, REQUEST_ID
from clepsydra.core.wire import Heads
from clepsydra.scheduler.first_life import encoded_meta
from clepsydra.store.port import Action
from clepsydra.store.tuples import action_of
from clepsydra.v1 import action_pb2, scheduler_pb2
from clepsydra.v1.action_pb2 import Meta
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest

# Each of these fields is looked at in `usual_life`.
_USUAL_FIELDS: dict[Any, set[str]] = {
    scheduler_pb2.BatchCreateActionsRequest: {"requests"},
    scheduler_pb2.CreateActionRequest: {"action", "request_id"},
    action_pb2.ScheduledAction: {"meta", "spec"},
    action_pb2.Meta: {"id", "labels"},
    action_pb2.Spec: {"schedule", "handler"},
    action_pb2.Schedule: {"start_time", "delay"},
    action_pb2.PythonHandler: {"name", "payload", "content_type"},
}

# In which nothing is left out.
_WHOLE_FILES: tuple[Any, ...] = (timestamp_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR)

_REQUESTS = Heads(BatchCreateActionsRequest.REQUESTS_FIELD_NUMBER)
WHOLE_NANOS = range(0, 1_000_000_000, 1000)
# What comes in at the same moment is planned at the same moment.
_encoded_now = lru_cache(1)(encoded_time)


def _usual_messages(*, merged: bool = False) -> Any:
    """BatchCreateActionsRequest and what is in it, without all other fields; or as if all requests in it were one."""
    file = FileDescriptorProto(name="usual.proto", package="clepsydra.v1", syntax="proto3")
    file.dependency.extend(known.name for known in _WHOLE_FILES)
    for kind, usual in _USUAL_FIELDS.items():
        described = file.message_type.add()
        kind.DESCRIPTOR.CopyToProto(described)
        fields = [field for field in described.field if field.name in usual]
        del described.field[:]
        del described.oneof_decl[:]
        for field in fields:
            field.ClearField("oneof_index")
            if merged and field.name == "requests":
                field.label = FieldDescriptorProto.LABEL_OPTIONAL
            described.field.append(field)
    pool: Any = DescriptorPool()
    for known in _WHOLE_FILES:
        pool.AddSerializedFile(known.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(BatchCreateActionsRequest.DESCRIPTOR.full_name))


_UsualRequests, _AllInOne = _usual_messages(), _usual_messages(merged=True)


def usual_among(requests: Sequence[CreateActionRequest]) -> Sequence[bool]:
    """Which of them have none but the usual fields."""
    encoded = [request.SerializeToString() for request in requests]
    together = b"".join([_REQUESTS[len(each)] + each for each in encoded])
    try:
        usual = _UsualRequests.FromString(together)
    except DecodeError:
        return [False] * len(encoded)
    usual.DiscardUnknownFields()
    if usual.ByteSize() == len(together):
        return [True] * len(encoded)
    return [rest.ByteSize() == len(each) for rest, each in zip(usual.requests, encoded, strict=True)]


def are_all_usual(batch: bytes) -> bool:
    """Whether all requests of an encoded batch have none but the usual fields.

    If they are merged into one, of each usual field one value is left, but of what is not usual nothing is lost.
    """
    try:
        merged = _AllInOne.FromString(batch)
    except DecodeError:
        # Fields that nobody knows can be nested so deeply that no more than the request itself can be read.
        return False
    size = merged.ByteSize()
    merged.DiscardUnknownFields()
    return bool(merged.ByteSize() == size)


def usual_life(request: CreateActionRequest, action_id: str, guid: str, now_us: int) -> Action | None:
    """What `first_life` comes to for a request with the usual fields. None if a value asks for the general way."""
    given = request.action
    schedule, handler = given.spec.schedule, given.spec.handler
    if schedule.HasField("start_time"):
        start = schedule.start_time
    elif DELAY(schedule.delay):
        return None
    else:
        start = timestamp(now_us + duration_us(schedule.delay))
    start_us = us_of(start)
    # What is finer than a microsecond would have to be rounded.
    if not 0 <= start_us < END_OF_TIME_US or start.nanos not in WHOLE_NANOS:
        return None
    content_type = handler.content_type
    if HANDLER_NAME(handler.name) or PAYLOAD(handler.payload) or (content_type and CONTENT_TYPE(content_type)):
        return None
    if request.request_id and REQUEST_ID(request.request_id):
        return None
    labels = b""
    if given.HasField("meta"):
        if (given.meta.id and ID(given.meta.id)) or LABELS(given.meta.labels):
            return None
        labels = _encoded_labels(given.meta)
    meta = encoded_meta(action_id, guid, labels, now_us)
    return planned_life(action_id, guid, meta, start.SerializeToString(), start_us, handler.SerializeToString(), now_us)


def planned_life(
    action_id: str, guid: str, meta: bytes, start: bytes, start_us: int, handler: bytes, now_us: int
) -> Action:
    """A handler is called once, from a start time on: at once, if that has passed."""
    at, at_us = (start, start_us) if start_us >= now_us else (_encoded_now(now_us), now_us)
    return action_of((action_id, guid, meta, spec_of(start, handler), planned(at), at_us))


def _encoded_labels(meta: Meta) -> bytes:
    """What a usual meta says beside the id."""
    if not meta.labels:
        return b""
    rest = Meta()
    rest.CopyFrom(meta)
    rest.ClearField("id")
    return rest.SerializeToString()
