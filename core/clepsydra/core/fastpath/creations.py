"""Creations of actions that call a handler once: one by one, or a batch column by column.

Concatenated protobuf messages merge. So a batch that is parsed as if all its requests were one, with repeated fields
for every text and number, yields all values of a field in one list, in the order of the requests. That takes three
parses for a batch, where asking each request for its values would take a dozen calls for each.

The lists do not tell which request a value belongs to. So the requests of a batch must be alike: all have a start time
or none has, all have an id or none has, and none has a delay or labels. Other requests are planned one by one.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core.action.creation import ETAG_GUID_LENGTH, FIRST_REVISION, action_id_of, etag_of
from clepsydra.core.action.spec import DELAY
from clepsydra.core.encoding import FieldHeads
from clepsydra.core.fastpath.bytes_of_action import encode_spec, encode_time, encode_waiting_status
from clepsydra.core.fastpath.merged_requests import VALUES, WHOLE, are_common
from clepsydra.core.ids import GUID_LENGTH
from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.tables import Action, make_action
from clepsydra.core.targets.handler import CONTENT_TYPE, NAME
from clepsydra.core.times import END_OF_TIME_US, SECOND_US, duration_us, timestamp, us_of
from clepsydra.core.validation.requests import ID, REQUEST_ID, labels
from clepsydra.v1.action_pb2 import Meta, Schedule
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest

_REQUESTS = FieldHeads(BatchCreateActionsRequest.REQUESTS_FIELD_NUMBER)
# Nanoseconds that need no rounding to a microsecond.
_WHOLE_MICROSECONDS = range(0, 1_000_000_000, 1000)

_ID = FieldHeads(Meta.ID_FIELD_NUMBER)
_CREATE_TIME, _UPDATE_TIME = FieldHeads(Meta.CREATE_TIME_FIELD_NUMBER), FieldHeads(Meta.UPDATE_TIME_FIELD_NUMBER)
_REVISION = Meta(revision=FIRST_REVISION).SerializeToString()
# All guids have one length, and so have the etags of all new actions.
_GUID_HEAD = FieldHeads(Meta.GUID_FIELD_NUMBER)[GUID_LENGTH]
_ETAG_END = etag_of("", FIRST_REVISION).encode()
_ETAG_HEAD = FieldHeads(Meta.ETAG_FIELD_NUMBER)[ETAG_GUID_LENGTH + len(_ETAG_END)]
_BEFORE_ETAG = _REVISION + _ETAG_HEAD


class _Batch(NamedTuple):
    """What the requests of a batch say, in their order; all of it is valid."""

    # Empty: none has an id.
    action_ids: Sequence[str]
    starts_us: Sequence[int]
    # The start times and the handlers as they are encoded.
    starts: Sequence[bytes]
    handlers: Sequence[bytes]


def plan_creations(
    requests: Sequence[CreateActionRequest], generated_ids: Sequence[str], guids: Sequence[str], now_us: int
) -> list[Action | None]:
    if len(requests) > 1:
        actions = _plan_batch(requests, generated_ids, guids, now_us)
        if actions is not None:
            return [*actions]
    return [
        _plan_one(request, generated_id, guid, now_us) if request.action.spec.HasField("handler") else None
        for request, generated_id, guid in zip(requests, generated_ids, guids, strict=True)
    ]


def _plan_one(request: CreateActionRequest, generated_id: str, guid: str, now_us: int) -> Action | None:
    given = request.action
    spec, encoded = given.spec, request.SerializeToString()
    if not are_common(_REQUESTS[len(encoded)] + encoded):
        return None
    start, handler, meta = _start_of(spec.schedule, now_us), spec.handler, given.meta
    content_type, request_id, given_id, given_labels = handler.content_type, request.request_id, meta.id, meta.labels
    if (
        start is None
        or NAME(handler.name)
        or len(handler.payload) > PAYLOAD_BYTES
        or (content_type and CONTENT_TYPE(content_type))
        or (request_id and REQUEST_ID(request_id))
        or (given_id and ID(given_id))
        or (given_labels and labels(given_labels))
    ):
        return None
    action_id = given_id or action_id_of(request, generated_id)
    start_us = us_of(start)
    encoded_start = start.SerializeToString()
    encoded_meta = _encode_meta(action_id, guid, _after_etag_start(now_us))
    if given_labels:
        encoded_meta += Meta(labels=given_labels).SerializeToString(deterministic=True)
    encoded_spec = encode_spec(encoded_start, handler.SerializeToString())
    if start_us < now_us:
        # An action whose start has passed starts at once.
        start_us, encoded_start = now_us, encode_time(now_us)
    return make_action((action_id, guid, encoded_meta, encoded_spec, encode_waiting_status(encoded_start), start_us))


def _start_of(schedule: Schedule, now_us: int) -> Timestamp | None:
    """None if it is not valid, or needs rounding."""
    if schedule.HasField("start_time"):
        start = schedule.start_time
        if start.nanos not in _WHOLE_MICROSECONDS:
            return None
    elif DELAY(schedule.delay):
        return None
    else:
        start = timestamp(now_us + duration_us(schedule.delay))
    return start if 0 <= us_of(start) < END_OF_TIME_US else None


def _plan_batch(
    requests: Sequence[CreateActionRequest], generated_ids: Sequence[str], guids: Sequence[str], now_us: int
) -> list[Action] | None:
    columns = _read_batch(requests, now_us)
    if columns is None:
        return None
    given_ids, starts_us, starts, handlers = columns
    action_ids = given_ids or generated_ids
    metas = map(_encode_meta, action_ids, guids, repeat(_after_etag_start(now_us)))
    specs = map(encode_spec, starts, handlers)
    if min(starts_us) < now_us:
        now = encode_time(now_us)
        starts = [start if us >= now_us else now for start, us in zip(starts, starts_us, strict=True)]
        starts_us = [max(us, now_us) for us in starts_us]
    statuses = map(encode_waiting_status, starts)
    return [*map(make_action, zip(action_ids, guids, metas, specs, statuses, starts_us, strict=True))]


def _read_batch(requests: Sequence[CreateActionRequest], now_us: int) -> _Batch | None:
    """None if the requests are not alike, not of the common kind, or not valid."""
    if not requests[0].action.spec.HasField("handler"):
        return None
    # Encoded again, no request has a field twice.
    each = [*map(CreateActionRequest.SerializeToString, requests)]
    heads = map(_REQUESTS.__getitem__, map(len, each))
    encoded = b"".join(chain.from_iterable(zip(heads, each, strict=True)))
    if not are_common(encoded):
        return None
    values, count = VALUES.FromString(encoded).requests, len(requests)
    meta, schedule, handler = values.action.meta, values.action.spec.schedule, values.action.spec.handler
    if meta.labels or schedule.delay or len(handler.name) != count:
        return None
    # Some of the actions would have ids, generated or from a request id, and the lists do not tell which.
    if len(meta.id) != count and (meta.id or values.request_id):
        return None
    if not _are_valid(meta.id, values.request_id, handler):
        return None
    whole = WHOLE.FromString(encoded).requests.action.spec
    starts, handlers = list(whole.schedule.start_time), list(whole.handler)
    if not starts:
        return _Batch(list(meta.id), [now_us] * count, [encode_time(now_us)] * count, handlers)
    starts_us = _start_times_us(schedule.start_time, starts) if len(starts) == count else None
    return None if starts_us is None else _Batch(list(meta.id), starts_us, starts, handlers)


def _are_valid(action_ids: Sequence[str], request_ids: Sequence[str], handler: Any) -> bool:
    # The same few handlers are named again and again.
    return not (
        max(map(len, handler.payload), default=0) > PAYLOAD_BYTES
        or any(map(NAME, set(handler.name)))
        or any(map(CONTENT_TYPE, set(handler.content_type)))
        or any(map(ID, action_ids))
        or any(map(REQUEST_ID, request_ids))
    )


def _start_times_us(values: Any, start_times: Sequence[bytes]) -> list[int] | None:
    """None if one is not valid, or needs rounding."""
    count, seconds, nanos = len(start_times), values.seconds, values.nanos or [0] * len(start_times)
    if len(nanos) != count or len(seconds) != count:
        # A zero is not encoded, so the lists have gaps.
        parsed = [Timestamp.FromString(each) for each in start_times]
        seconds, nanos = [each.seconds for each in parsed], [each.nanos for each in parsed]
    if not all(map(_WHOLE_MICROSECONDS.__contains__, nanos)):
        return None
    starts_us = [second * SECOND_US + nano // 1000 for second, nano in zip(seconds, nanos, strict=True)]
    return starts_us if min(starts_us) >= 0 and max(starts_us) < END_OF_TIME_US else None


def _encode_meta(action_id: str, guid: str, after_etag_start: bytes) -> bytes:
    """The meta of a new action, without labels."""
    named, life = action_id.encode(), guid.encode()
    etag_start = life[:ETAG_GUID_LENGTH]
    return b"".join((_ID[len(named)], named, _GUID_HEAD, life, _BEFORE_ETAG, etag_start, after_etag_start))


@lru_cache(1)
def _after_etag_start(now_us: int) -> bytes:
    """What follows the guid in the etag, the same for every action that is created now."""
    now = encode_time(now_us)
    length = len(now)
    return b"".join((_ETAG_END, _CREATE_TIME[length], now, _UPDATE_TIME[length], now))
