"""Requests of the common kind, which the fast path plans, and changes that make them another."""

from collections.abc import Callable

from clepsydra.core.times import END_OF_TIME_US, SECOND_US, duration, set_us
from clepsydra.v1 import action_pb2
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

NOW_US = 1_700_000_000_123_456


def common_request(start_us: int = NOW_US + SECOND_US) -> CreateActionRequest:
    request = CreateActionRequest()
    set_us(request.action.spec.schedule.start_time, start_us)
    handler = request.action.spec.handler
    handler.name, handler.payload, handler.content_type = "f", b"{}", "application/json"
    return request


def _start(request: CreateActionRequest, seconds: int, nanos: int) -> None:
    start = request.action.spec.schedule.start_time
    start.seconds, start.nanos = seconds, nanos


UNCOMMON: dict[str, Callable[[CreateActionRequest], object]] = {
    "says nothing": lambda request: request.Clear(),
    "a delay that is none": lambda request: setattr(request.action.spec.schedule.delay, "nanos", -1),
    "a delay that is too long": lambda request: setattr(
        request.action.spec.schedule.delay, "seconds", 71 * 365 * 86400
    ),
    "a delay with an unknown field": lambda request: request.action.spec.schedule.delay.MergeFromString(b"\x18\x01"),
    "a time before all times": lambda request: _start(request, -1, 0),
    "a time beyond the end": lambda request: set_us(request.action.spec.schedule.start_time, END_OF_TIME_US),
    "a time to be rounded": lambda request: _start(request, 1_800_000_000, 1),
    "a time that is none": lambda request: _start(request, 1_800_000_000, 1_000_000_000),
    "a negative part of a second": lambda request: _start(request, 1_800_000_000, -1000),
    "once, in so many words": lambda request: request.action.spec.schedule.once.SetInParent(),
    "periodic": lambda request: request.action.spec.schedule.periodic.interval.CopyFrom(duration(SECOND_US)),
    "a policy": lambda request: request.action.spec.retry.SetInParent(),
    "no interruption limit": lambda request: setattr(request.action.spec, "interruption_limit", 0),
    "another target": lambda request: request.action.spec.log.SetInParent(),
    "no target": lambda request: request.action.spec.ClearField("handler"),
    "no name": lambda request: request.action.spec.handler.ClearField("name"),
    "a name that is none": lambda request: setattr(request.action.spec.handler, "name", " "),
    "a content type that is none": lambda request: setattr(request.action.spec.handler, "content_type", "json"),
    "too large": lambda request: setattr(request.action.spec.handler, "payload", bytes(256 * 1024 + 1)),
    "an id that is none": lambda request: setattr(request.action.meta, "id", " "),
    "a request id that is none": lambda request: setattr(request, "request_id", " "),
    "a label that is none": lambda request: request.action.meta.labels.update({"": "x"}),
    "what the scheduler writes": lambda request: setattr(request.action.meta, "guid", "x"),
    "a status": lambda request: setattr(request.action.status, "state", action_pb2.SCHEDULED),
    "not to be written": lambda request: setattr(request, "validate_only", True),
    "an unknown field": lambda request: request.action.spec.handler.MergeFromString(b"\xf8\x06\x01"),
    "an unknown field of a time": lambda request: request.action.spec.schedule.start_time.MergeFromString(b"\x18\x01"),
}
