"""Usual creations in bulk: a batch is read, checked and planned column by column.

Two encoded messages, one after the other, are both merged (`core/wire.py`). So a batch that is read as if it were a
single request, with texts and numbers that may occur more than once, has all values of a field in one list, in the
order of the requests. That takes three calls for a batch, where to ask each request for its values takes a dozen.

What the lists do not tell is whose a value is, so this is for batches whose requests are alike: all are usual, without
labels, delays and request ids; either all have start times or none has, and the same goes for ids. Any other batch is
taken in request by request, with the same results: see `usual.py`. So is one in which anything is wrong.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core.ids import Ids
from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.moments import END_OF_TIME_US, SECOND_US
from clepsydra.core.usual import encoded_time, planned, spec_of
from clepsydra.core.validation import CONTENT_TYPE, HANDLER_NAME, ID
from clepsydra.scheduler.first_life import encoded_meta
from clepsydra.scheduler.usual import WHOLE_NANOS, are_all_usual
from clepsydra.store.port import Put
from clepsydra.store.tuples import action_of, put_of
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest


class Columns(NamedTuple):
    """What the requests of a batch say, in their order. All of it is sound."""

    # None: they are to be chosen.
    action_ids: Sequence[str] | None
    starts_us: Sequence[int]
    # As they were encoded.
    starts: Sequence[bytes]
    handlers: Sequence[bytes]


def columns_of(batch: BatchCreateActionsRequest, now_us: int) -> Columns | None:
    """None if its requests are not alike, or if one of them asks to be looked at closely."""
    # Encoded anew, so that no request has a field more than once: then as many values as requests are one for each.
    encoded = batch.SerializeToString()
    if not are_all_usual(encoded):
        return None
    request = _VALUES.FromString(encoded).requests
    meta, schedule, handler = request.action.meta, request.action.spec.schedule, request.action.spec.handler
    if request.request_id or meta.labels or schedule.delay:
        return None
    count = len(batch.requests)
    whole = _WHOLE.FromString(encoded).requests.action.spec
    starts, handlers = list(whole.schedule.start_time), list(whole.handler)
    if not 0 < count == len(handler.name) or len(meta.id) not in (0, count) or len(starts) not in (0, count):
        return None
    if not _are_sound(meta.id, handler, handlers):
        return None
    if not starts:
        return Columns(meta.id or None, [now_us] * count, [encoded_time(now_us)] * count, handlers)
    starts_us = _starts_us(schedule.start_time, starts)
    return None if starts_us is None else Columns(meta.id or None, starts_us, starts, handlers)


def creations(columns: Columns, ids: Ids, shards: int, now_us: int) -> list[Put]:
    """What to write, and in it what to answer: the same as `usual_life` has it, for requests of their own."""
    action_ids, starts_us, starts, handlers = columns
    count = len(handlers)
    drawn, guids = ids.shards_of_many(shards, count), ids.guids(count)
    if action_ids is None:
        action_ids = ids.action_ids(count, now_us)
    metas = [encoded_meta(action_id, guid, b"", now_us) for action_id, guid in zip(action_ids, guids, strict=True)]
    specs = map(spec_of, starts, handlers)
    if min(starts_us) < now_us:
        # What should have started by now starts at once.
        now = encoded_time(now_us)
        starts = [start if us >= now_us else now for start, us in zip(starts, starts_us, strict=True)]
        starts_us = [max(us, now_us) for us in starts_us]
    statuses = map(planned, starts)
    actions = map(action_of, zip(action_ids, guids, metas, specs, statuses, starts_us, strict=True))
    return [*map(put_of, zip(repeat(None), actions, drawn, repeat(now_us)))]  # noqa: B905 - the others have no end


def _starts_us(values: Any, starts: Sequence[bytes]) -> list[int] | None:
    """None if one asks for more than to be stored as it is."""
    seconds, nanos = values.seconds, values.nanos
    if len(nanos) != len(starts):
        # A whole second does not say that there is nothing beyond it.
        nanos = [Timestamp.FromString(start).nanos for start in starts]
    if len(seconds) != len(starts) or not all(map(WHOLE_NANOS.__contains__, nanos)):
        return None
    starts_us = [second * SECOND_US + nano // 1000 for second, nano in zip(seconds, nanos, strict=True)]
    return starts_us if min(starts_us) >= 0 and max(starts_us) < END_OF_TIME_US else None


def _are_sound(action_ids: Sequence[str], handler: Any, handlers: Sequence[bytes]) -> bool:
    # A payload is no larger than the handler's message that it is in. The same few handlers are named again and again.
    return not (
        max(map(len, handlers)) > PAYLOAD_BYTES
        or any(map(HANDLER_NAME, set(handler.name)))
        or any(map(CONTENT_TYPE, set(handler.content_type)))
        or any(map(ID, action_ids))
    )


# A field, and which fields of it are wanted; of a text or a number, and of a message to be had as it was encoded, none.
Wanted = Mapping[str, "Wanted"]


def _columns_message(kind: Any, wanted: Wanted) -> DescriptorProto:
    """The message that all messages of this kind are merged into: each wanted value is repeated."""
    merged = DescriptorProto(name=kind.name)
    for name, within in wanted.items():
        field = kind.fields_by_name[name]
        column = merged.field.add(name=name, number=field.number)
        if within:
            merged.nested_type.append(_columns_message(field.message_type, within))
            column.type, column.type_name = FieldDescriptorProto.TYPE_MESSAGE, merged.nested_type[-1].name
            column.label = FieldDescriptorProto.LABEL_OPTIONAL
        else:
            column.type = FieldDescriptorProto.TYPE_BYTES if field.message_type else field.type
            column.label = FieldDescriptorProto.LABEL_REPEATED
    return merged


def _columns(wanted: Wanted) -> Any:
    file = FileDescriptorProto(name="columns.proto", package="clepsydra.columns", syntax="proto3")
    file.message_type.append(_columns_message(BatchCreateActionsRequest.DESCRIPTOR, wanted))
    pool: Any = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{file.message_type[0].name}"))


_VALUES = _columns(
    {
        "requests": {
            "request_id": {},
            "action": {
                "meta": {"id": {}, "labels": {}},
                "spec": {
                    "schedule": {"start_time": {"seconds": {}, "nanos": {}}, "delay": {}},
                    "handler": {"name": {}, "content_type": {}},
                },
            },
        }
    }
)
_WHOLE = _columns({"requests": {"action": {"spec": {"schedule": {"start_time": {}}, "handler": {}}}}})
