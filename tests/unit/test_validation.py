"""Every field of an action that a user sends: just inside each limit it is accepted, just outside it is named."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core import limits
from clepsydra.core.action import spec as action_spec
from clepsydra.core.targets import handler as handler_target
from clepsydra.core.targets import http as http_target
from clepsydra.core.targets import log as log_target
from clepsydra.core.times import DAY_US, END_OF_TIME_US, duration, timestamp
from clepsydra.core.validation.requests import spec_violations, violations_of
from clepsydra.v1.action_pb2 import (
    HttpHeader,
    HttpRequest,
    LogLine,
    Periodic,
    PythonHandler,
    Retention,
    RetryPolicy,
    Schedule,
    Spec,
)
from clepsydra.v1.scheduler_pb2 import CreateActionRequest


def a_request() -> CreateActionRequest:
    request = CreateActionRequest()
    request.action.meta.id = "reminder-17"
    request.action.spec.log.message = "ping"
    return request


def paths_of(request: Any) -> list[str]:
    return [violation.path for violation in violations_of(request)]


def lasting(field: str, least_us: int, most_us: int) -> list[tuple[str, Spec, str]]:
    """Both ends of a duration of the spec, and what is no duration at all."""
    path = f"action.spec.{field}"

    def spec_with(value: Duration) -> Spec:
        spec = Spec(log=LogLine())
        holder: Any = spec
        *holders, name = field.split(".")
        for step in holders:
            holder = getattr(holder, step)
        getattr(holder, name).CopyFrom(value)
        return spec

    return [
        ("", spec_with(duration(least_us)), f"{path} at least"),
        ("", spec_with(duration(most_us)), f"{path} at most"),
        (path, spec_with(duration(most_us + 1)), f"{path} too long"),
        (path, spec_with(duration(least_us - 1) if least_us else Duration(nanos=-1)), f"{path} too short"),
        (path, spec_with(Duration(seconds=-1)), f"{path} negative"),
        (path, spec_with(Duration(seconds=1, nanos=1_000_000_000)), f"{path} too many nanos"),
        (path, spec_with(Duration(seconds=1, nanos=-1)), f"{path} with two signs"),
    ]


SPEC_DURATIONS = [
    *lasting("schedule.delay", 0, action_spec.DELAY_MAX_US),
    *lasting("schedule.periodic.interval", action_spec.INTERVAL_MIN_US, action_spec.INTERVAL_MAX_US),
    *lasting("attempt_timeout", action_spec.ATTEMPT_TIMEOUT_MIN_US, action_spec.ATTEMPT_TIMEOUT_MAX_US),
    *lasting("start_deadline", action_spec.START_DEADLINE_MIN_US, action_spec.START_DEADLINE_MAX_US),
    *lasting("retry.max_delay", 0, action_spec.RETRY_DELAY_MAX_US),
    *lasting("retry.first_delay", 0, action_spec.RETRY_DELAY_MAX_US),
    *lasting("retry.max_elapsed", 0, action_spec.RETRY_ELAPSED_MAX_US),
    *lasting("retention.after_success", 0, action_spec.RETENTION_MAX_US),
    *lasting("retention.after_failure", 0, action_spec.RETENTION_MAX_US),
]


@pytest.mark.parametrize(("path", "spec"), [pytest.param(path, spec, id=name) for path, spec, name in SPEC_DURATIONS])
def test_durations_keep_within_their_limits(path: str, spec: Spec) -> None:
    request = a_request()
    request.action.spec.CopyFrom(spec)

    assert paths_of(request) == ([path] if path else [])


def in_schedule(**fields: Any) -> Spec:
    return Spec(log=LogLine(), schedule=Schedule(**fields))


def periodic(**fields: Any) -> Spec:
    return in_schedule(periodic=Periodic(interval=duration(DAY_US), **fields))


def retry(**fields: Any) -> Spec:
    return Spec(log=LogLine(), retry=RetryPolicy(**fields))


def http(**fields: Any) -> Spec:
    return Spec(http=HttpRequest(**{"url": "https://example.com/", **fields}))


def header(name: str, value: str = "") -> Spec:
    return http(headers=[HttpHeader(name="X-First"), HttpHeader(name=name, value=value)])


def handler(**fields: Any) -> Spec:
    return Spec(handler=PythonHandler(**{"name": "remind", **fields}))


LAST_TIME = timestamp(END_OF_TIME_US - 1)

FINE_SPECS = [
    in_schedule(),
    in_schedule(start_time=Timestamp()),
    in_schedule(start_time=LAST_TIME),
    in_schedule(once={}),
    periodic(end_time=LAST_TIME),
    periodic(mode=Periodic.DRIFT),
    periodic(mode=Periodic.MODE_UNSPECIFIED),
    periodic(max_runs=action_spec.RUNS_MAX),
    retry(),
    retry(multiplier=action_spec.RETRY_MULTIPLIER_MIN),
    retry(multiplier=action_spec.RETRY_MULTIPLIER_MAX),
    retry(jitter=0),
    retry(jitter=1),
    retry(max_attempts=0),
    retry(max_attempts=action_spec.RETRY_ATTEMPTS_MAX),
    retry(first_delay=duration(5), max_delay=duration(5)),
    retry(max_delay=duration(5)),
    Spec(log=LogLine(), retention=Retention()),
    Spec(log=LogLine(), interruption_limit=0),
    Spec(log=LogLine(), interruption_limit=action_spec.INTERRUPTIONS_MAX),
    Spec(log=LogLine(message="ä" * log_target.LOG_MESSAGE_LENGTH)),
    handler(),
    handler(name="a" * handler_target.HANDLER_NAME_LENGTH),
    handler(name="billing.charge:v2/card-1"),
    handler(name="_private"),
    handler(payload=b"\0" * limits.PAYLOAD_BYTES),
    handler(content_type="application/json"),
    handler(content_type='text/plain; charset="utf-8"'),
    handler(content_type="application/x-" + "a" * (handler_target.CONTENT_TYPE_LENGTH - 14)),
    http(),
    http(url="HTTP://example.com"),
    http(url="https://user:secret@api.example.com:8443/path?x=1#part"),
    http(url="http://127.0.0.1:65535/"),
    http(url="http://[2001:db8::1]:80/"),
    http(url="http://my_service?x=/"),
    http(url="https://example.com/" + "a" * (http_target.URL_LENGTH - 20)),
    http(method="PATCH"),
    http(method="X" * http_target.HTTP_METHOD_LENGTH),
    http(body=b"\0" * limits.PAYLOAD_BYTES),
    http(headers=[HttpHeader(name="X-Same", value="1")] * http_target.HTTP_HEADERS),
    header("Authorization", "Bearer \t x"),
    header("x" * http_target.HTTP_HEADER_NAME_LENGTH, "~" * http_target.HTTP_HEADER_VALUE_LENGTH),
    header("Clepsydrae", "not ours"),
]


@pytest.mark.parametrize("spec", FINE_SPECS, ids=lambda spec: str(spec)[:40])
def test_what_is_within_the_limits_is_fine(spec: Spec) -> None:
    assert spec_violations(spec) == ()


# The field that is named, as seen from the spec, and a spec in which nothing else is wrong.
WRONG_SPECS = [
    ("target", Spec()),
    ("schedule.start_time", in_schedule(start_time=timestamp(END_OF_TIME_US))),
    ("schedule.start_time", in_schedule(start_time=Timestamp(seconds=-1))),
    ("schedule.start_time", in_schedule(start_time=Timestamp(seconds=1, nanos=-1))),
    ("schedule.start_time", in_schedule(start_time=Timestamp(seconds=1, nanos=1_000_000_000))),
    ("schedule.start_time", in_schedule(start_time=Timestamp(seconds=LAST_TIME.seconds, nanos=999_999_001))),
    ("schedule.periodic.interval", in_schedule(periodic=Periodic())),
    ("schedule.periodic.mode", periodic(mode=17)),
    ("schedule.periodic.end_time", periodic(end_time=timestamp(END_OF_TIME_US))),
    ("schedule.periodic.max_runs", periodic(max_runs=action_spec.RUNS_MAX + 1)),
    ("retry.multiplier", retry(multiplier=0.999)),
    ("retry.multiplier", retry(multiplier=action_spec.RETRY_MULTIPLIER_MAX + 0.001)),
    ("retry.multiplier", retry(multiplier=math.nan)),
    ("retry.multiplier", retry(multiplier=math.inf)),
    ("retry.jitter", retry(jitter=-0.001)),
    ("retry.jitter", retry(jitter=1.001)),
    ("retry.jitter", retry(jitter=math.nan)),
    ("retry.max_attempts", retry(max_attempts=action_spec.RETRY_ATTEMPTS_MAX + 1)),
    ("retry.max_delay", retry(first_delay=duration(6), max_delay=duration(5))),
    ("interruption_limit", Spec(log=LogLine(), interruption_limit=action_spec.INTERRUPTIONS_MAX + 1)),
    ("log.message", Spec(log=LogLine(message="a" * (log_target.LOG_MESSAGE_LENGTH + 1)))),
    ("handler.name", Spec(handler=PythonHandler())),
    ("handler.name", handler(name="a" * (handler_target.HANDLER_NAME_LENGTH + 1))),
    ("handler.name", handler(name=".hidden")),
    ("handler.name", handler(name="with blank")),
    ("handler.name", handler(name="name\n")),
    ("handler.payload", handler(payload=b"\0" * (limits.PAYLOAD_BYTES + 1))),
    ("handler.content_type", handler(content_type="json")),
    ("handler.content_type", handler(content_type="text/plain\r\nX: y")),
    ("handler.content_type", handler(content_type="application/x-" + "a" * (handler_target.CONTENT_TYPE_LENGTH - 13))),
    ("http.url", Spec(http=HttpRequest())),
    ("http.url", http(url="example.com")),
    ("http.url", http(url="/path")),
    ("http.url", http(url="ftp://example.com/")),
    ("http.url", http(url="https://")),
    ("http.url", http(url="https:///path")),
    ("http.url", http(url="https://:80/")),
    ("http.url", http(url="https://example.com:0/")),
    ("http.url", http(url="https://example.com:65536/")),
    ("http.url", http(url="https://example.com:port/")),
    ("http.url", http(url="https://exa mple.com/")),
    ("http.url", http(url="https://example.com/a b")),
    ("http.url", http(url="https://example.com/\n")),
    ("http.url", http(url="https://münchen.example/")),
    ("http.url", http(url="https://[::1/")),
    ("http.url", http(url="https://[:::]/")),
    ("http.url", http(url="https://example.com/" + "a" * (http_target.URL_LENGTH - 19))),
    ("http.method", http(method="get")),
    ("http.method", http(method="CONNECT")),
    ("http.method", http(method="GET POST")),
    ("http.method", http(method="X" * (http_target.HTTP_METHOD_LENGTH + 1))),
    ("http.body", http(body=b"\0" * (limits.PAYLOAD_BYTES + 1))),
    ("http.headers", http(headers=[HttpHeader(name="X-Same")] * (http_target.HTTP_HEADERS + 1))),
    ("http.headers[1].name", header("")),
    ("http.headers[1].name", header("X Y")),
    ("http.headers[1].name", header("X:")),
    ("http.headers[1].name", header("X\r\n")),
    ("http.headers[1].name", header("x" * (http_target.HTTP_HEADER_NAME_LENGTH + 1))),
    ("http.headers[1].value", header("X", "a\r\nb")),
    ("http.headers[1].value", header("X", "a\nb")),
    ("http.headers[1].value", header("X", "a\0b")),
    ("http.headers[1].value", header("X", "ä")),
    ("http.headers[1].value", header("X", "~" * (http_target.HTTP_HEADER_VALUE_LENGTH + 1))),
    *(
        ("http.headers[1].name", header(name))
        for name in (
            "Connection",
            "content-length",
            "Expect",
            "HOST",
            "Idempotency-Key",
            "Keep-Alive",
            "Proxy-Authenticate",
            "Proxy-Authorization",
            "Proxy-Connection",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
            "Clepsydra-Attempt",
            "CLEPSYDRA-ANYTHING",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "spec"), WRONG_SPECS)
def test_what_is_beyond_a_limit_is_named_and_nothing_else_is(path: str, spec: Spec) -> None:
    request = a_request()
    request.action.spec.CopyFrom(spec)

    assert paths_of(request) == [f"action.spec.{path}"]
    assert [violation.path for violation in spec_violations(spec)] == [f"action.spec.{path}"]


def test_everything_that_is_wrong_is_named_at_once() -> None:
    request = a_request()
    request.request_id = "a b"
    request.action.meta.id = ""
    request.action.meta.labels[""] = "x"
    request.action.spec.retry.jitter = 2
    request.action.spec.http.url = "nowhere"

    assert sorted(paths_of(request)) == [
        'action.meta.labels[""]',
        "action.spec.http.url",
        "action.spec.retry.jitter",
        "request_id",
    ]


def test_delays_that_do_not_fit_together_are_named_with_all_the_rest() -> None:
    retry = RetryPolicy(first_delay=duration(2), max_delay=duration(1), jitter=2)
    paths = [violation.path for violation in action_spec.RULE(Spec(log=LogLine(), retry=retry))]
    assert paths == ["retry.jitter", "retry.max_delay"]
    # A delay that is wrong by itself is named once.
    retry.max_delay.seconds = -1
    paths = [violation.path for violation in action_spec.RULE(Spec(log=LogLine(), retry=retry))]
    assert paths == ["retry.max_delay", "retry.jitter"]


def test_of_a_long_key_so_much_is_shown_that_what_is_wrong_still_has_room() -> None:
    request = a_request()
    request.action.meta.labels["ü" * 1000] = "x"
    assert paths_of(request) == [f'action.meta.labels["{"ü" * 31}…"]']


def test_descriptions_say_what_is_allowed() -> None:
    spec = periodic()
    spec.schedule.periodic.interval.CopyFrom(duration(1))

    [violation] = spec_violations(spec)

    assert violation.description == "must last from 10 ms to 3,650 d"


# A field of a newer version: number 1000, one byte.
UNKNOWN_FIELD = b"\xc0\x3e\x01"


@pytest.mark.parametrize(
    ("path", "holder"),
    [
        ("", lambda request: request),
        ("action", lambda request: request.action),
        ("action.meta", lambda request: request.action.meta),
        ("action.spec", lambda request: request.action.spec),
        ("action.spec.schedule", lambda request: request.action.spec.schedule),
        ("action.spec.schedule.start_time", lambda request: request.action.spec.schedule.start_time),
        ("action.spec.attempt_timeout", lambda request: request.action.spec.attempt_timeout),
        ("action.spec.log", lambda request: request.action.spec.log),
    ],
)
def test_what_a_newer_version_might_ask_for_is_refused_not_dropped(
    path: str, holder: Callable[[CreateActionRequest], Any]
) -> None:
    request = a_request()
    request.action.spec.attempt_timeout.seconds = 1
    holder(request).MergeFromString(UNKNOWN_FIELD)

    [violation] = violations_of(request)

    assert violation.path == path
    assert "field number 1000" in violation.description
