import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATE_UNSPECIFIED: _ClassVar[State]
    SCHEDULED: _ClassVar[State]
    RETRYING: _ClassVar[State]
    PAUSED: _ClassVar[State]
    SUCCEEDED: _ClassVar[State]
    FAILED: _ClassVar[State]
    EXPIRED: _ClassVar[State]
    DELETED: _ClassVar[State]
    CANCELLED: _ClassVar[State]
STATE_UNSPECIFIED: State
SCHEDULED: State
RETRYING: State
PAUSED: State
SUCCEEDED: State
FAILED: State
EXPIRED: State
DELETED: State
CANCELLED: State

class ScheduledAction(_message.Message):
    __slots__ = ("meta", "spec", "status", "running", "plan_effect")
    class PlanEffect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        PLAN_EFFECT_UNSPECIFIED: _ClassVar[ScheduledAction.PlanEffect]
        KEPT: _ClassVar[ScheduledAction.PlanEffect]
        KEPT_IN_NEW_LIFE: _ClassVar[ScheduledAction.PlanEffect]
        PLANNED_AFRESH: _ClassVar[ScheduledAction.PlanEffect]
    PLAN_EFFECT_UNSPECIFIED: ScheduledAction.PlanEffect
    KEPT: ScheduledAction.PlanEffect
    KEPT_IN_NEW_LIFE: ScheduledAction.PlanEffect
    PLANNED_AFRESH: ScheduledAction.PlanEffect
    META_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    PLAN_EFFECT_FIELD_NUMBER: _ClassVar[int]
    meta: Meta
    spec: Spec
    status: Status
    running: Running
    plan_effect: ScheduledAction.PlanEffect
    def __init__(self, meta: _Optional[_Union[Meta, _Mapping]] = ..., spec: _Optional[_Union[Spec, _Mapping]] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., running: _Optional[_Union[Running, _Mapping]] = ..., plan_effect: _Optional[_Union[ScheduledAction.PlanEffect, str]] = ...) -> None: ...

class Running(_message.Message):
    __slots__ = ("worker", "start_time", "lease_end_time", "attempt_number")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    LEASE_END_TIME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    start_time: _timestamp_pb2.Timestamp
    lease_end_time: _timestamp_pb2.Timestamp
    attempt_number: int
    def __init__(self, worker: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lease_end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempt_number: _Optional[int] = ...) -> None: ...

class Meta(_message.Message):
    __slots__ = ("id", "guid", "revision", "etag", "create_time", "update_time", "labels", "applied_requests")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    GUID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    guid: str
    revision: int
    etag: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    applied_requests: _containers.RepeatedCompositeFieldContainer[AppliedRequest]
    def __init__(self, id: _Optional[str] = ..., guid: _Optional[str] = ..., revision: _Optional[int] = ..., etag: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., applied_requests: _Optional[_Iterable[_Union[AppliedRequest, _Mapping]]] = ...) -> None: ...

class AppliedRequest(_message.Message):
    __slots__ = ("request_id", "guid", "revision", "etag", "time", "fingerprint", "cancelled_attempt", "plan_effect")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GUID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    PLAN_EFFECT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    guid: str
    revision: int
    etag: str
    time: _timestamp_pb2.Timestamp
    fingerprint: bytes
    cancelled_attempt: bool
    plan_effect: ScheduledAction.PlanEffect
    def __init__(self, request_id: _Optional[str] = ..., guid: _Optional[str] = ..., revision: _Optional[int] = ..., etag: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., fingerprint: _Optional[bytes] = ..., cancelled_attempt: bool = ..., plan_effect: _Optional[_Union[ScheduledAction.PlanEffect, str]] = ...) -> None: ...

class Spec(_message.Message):
    __slots__ = ("schedule", "retry", "attempt_timeout", "start_deadline", "retention", "interruption_limit", "remembered_attempts", "http", "handler", "log")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    START_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTION_LIMIT_FIELD_NUMBER: _ClassVar[int]
    REMEMBERED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    HTTP_FIELD_NUMBER: _ClassVar[int]
    HANDLER_FIELD_NUMBER: _ClassVar[int]
    LOG_FIELD_NUMBER: _ClassVar[int]
    schedule: Schedule
    retry: RetryPolicy
    attempt_timeout: _duration_pb2.Duration
    start_deadline: _duration_pb2.Duration
    retention: Retention
    interruption_limit: int
    remembered_attempts: int
    http: HttpRequest
    handler: PythonHandler
    log: LogLine
    def __init__(self, schedule: _Optional[_Union[Schedule, _Mapping]] = ..., retry: _Optional[_Union[RetryPolicy, _Mapping]] = ..., attempt_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., start_deadline: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., interruption_limit: _Optional[int] = ..., remembered_attempts: _Optional[int] = ..., http: _Optional[_Union[HttpRequest, _Mapping]] = ..., handler: _Optional[_Union[PythonHandler, _Mapping]] = ..., log: _Optional[_Union[LogLine, _Mapping]] = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("start_time", "delay", "once", "periodic")
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    DELAY_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    PERIODIC_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    delay: _duration_pb2.Duration
    once: Once
    periodic: Periodic
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., once: _Optional[_Union[Once, _Mapping]] = ..., periodic: _Optional[_Union[Periodic, _Mapping]] = ...) -> None: ...

class Once(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Periodic(_message.Message):
    __slots__ = ("interval", "mode", "end_time", "max_runs")
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        MODE_UNSPECIFIED: _ClassVar[Periodic.Mode]
        FIXED_RATE: _ClassVar[Periodic.Mode]
        DRIFT: _ClassVar[Periodic.Mode]
    MODE_UNSPECIFIED: Periodic.Mode
    FIXED_RATE: Periodic.Mode
    DRIFT: Periodic.Mode
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_FIELD_NUMBER: _ClassVar[int]
    interval: _duration_pb2.Duration
    mode: Periodic.Mode
    end_time: _timestamp_pb2.Timestamp
    max_runs: int
    def __init__(self, interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., mode: _Optional[_Union[Periodic.Mode, str]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., max_runs: _Optional[int] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("first_delay", "multiplier", "max_delay", "jitter", "max_attempts", "max_elapsed")
    FIRST_DELAY_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    MAX_ELAPSED_FIELD_NUMBER: _ClassVar[int]
    first_delay: _duration_pb2.Duration
    multiplier: float
    max_delay: _duration_pb2.Duration
    jitter: float
    max_attempts: int
    max_elapsed: _duration_pb2.Duration
    def __init__(self, first_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., multiplier: _Optional[float] = ..., max_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., jitter: _Optional[float] = ..., max_attempts: _Optional[int] = ..., max_elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Retention(_message.Message):
    __slots__ = ("after_success", "after_failure")
    AFTER_SUCCESS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FAILURE_FIELD_NUMBER: _ClassVar[int]
    after_success: _duration_pb2.Duration
    after_failure: _duration_pb2.Duration
    def __init__(self, after_success: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., after_failure: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class HttpRequest(_message.Message):
    __slots__ = ("method", "url", "headers", "body")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    URL_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    method: str
    url: str
    headers: _containers.RepeatedCompositeFieldContainer[HttpHeader]
    body: bytes
    def __init__(self, method: _Optional[str] = ..., url: _Optional[str] = ..., headers: _Optional[_Iterable[_Union[HttpHeader, _Mapping]]] = ..., body: _Optional[bytes] = ...) -> None: ...

class HttpHeader(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class PythonHandler(_message.Message):
    __slots__ = ("name", "payload", "content_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    payload: bytes
    content_type: str
    def __init__(self, name: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("state", "scheduled_time", "occurrence_time", "counters", "last_attempt", "reason", "occurrence", "removable_time", "attempts", "end_time")
    STATE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_FIELD_NUMBER: _ClassVar[int]
    REMOVABLE_TIME_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    state: State
    scheduled_time: _timestamp_pb2.Timestamp
    occurrence_time: _timestamp_pb2.Timestamp
    counters: Counters
    last_attempt: Attempt
    reason: str
    occurrence: Occurrence
    removable_time: _timestamp_pb2.Timestamp
    attempts: _containers.RepeatedCompositeFieldContainer[Attempt]
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, state: _Optional[_Union[State, str]] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., occurrence_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., counters: _Optional[_Union[Counters, _Mapping]] = ..., last_attempt: _Optional[_Union[Attempt, _Mapping]] = ..., reason: _Optional[str] = ..., occurrence: _Optional[_Union[Occurrence, _Mapping]] = ..., removable_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[Attempt, _Mapping]]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Counters(_message.Message):
    __slots__ = ("succeeded_attempts", "failed_attempts", "interrupted_attempts", "consecutive_failed_attempts", "consecutive_interrupted_attempts", "runs", "missed_occurrences", "expired_occurrences", "cancelled_occurrences", "cancelled_attempts")
    SUCCEEDED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FAILED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONSECUTIVE_FAILED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    CONSECUTIVE_INTERRUPTED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    MISSED_OCCURRENCES_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_OCCURRENCES_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_OCCURRENCES_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    succeeded_attempts: int
    failed_attempts: int
    interrupted_attempts: int
    consecutive_failed_attempts: int
    consecutive_interrupted_attempts: int
    runs: int
    missed_occurrences: int
    expired_occurrences: int
    cancelled_occurrences: int
    cancelled_attempts: int
    def __init__(self, succeeded_attempts: _Optional[int] = ..., failed_attempts: _Optional[int] = ..., interrupted_attempts: _Optional[int] = ..., consecutive_failed_attempts: _Optional[int] = ..., consecutive_interrupted_attempts: _Optional[int] = ..., runs: _Optional[int] = ..., missed_occurrences: _Optional[int] = ..., expired_occurrences: _Optional[int] = ..., cancelled_occurrences: _Optional[int] = ..., cancelled_attempts: _Optional[int] = ...) -> None: ...

class Occurrence(_message.Message):
    __slots__ = ("failed_attempts", "interrupted_attempts", "first_attempt_time", "idempotency_key", "superseded_attempts", "lone_attempt")
    FAILED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ATTEMPT_TIME_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LONE_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    failed_attempts: int
    interrupted_attempts: int
    first_attempt_time: _timestamp_pb2.Timestamp
    idempotency_key: str
    superseded_attempts: int
    lone_attempt: int
    def __init__(self, failed_attempts: _Optional[int] = ..., interrupted_attempts: _Optional[int] = ..., first_attempt_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., superseded_attempts: _Optional[int] = ..., lone_attempt: _Optional[int] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("number", "id", "start_time", "end_time", "worker", "outcome", "error", "occurrence_time", "scheduled_time", "lateness")
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[Attempt.Outcome]
        SUCCESS: _ClassVar[Attempt.Outcome]
        FAILURE: _ClassVar[Attempt.Outcome]
        TIMEOUT: _ClassVar[Attempt.Outcome]
        INTERRUPTION: _ClassVar[Attempt.Outcome]
        CANCELLATION: _ClassVar[Attempt.Outcome]
    OUTCOME_UNSPECIFIED: Attempt.Outcome
    SUCCESS: Attempt.Outcome
    FAILURE: Attempt.Outcome
    TIMEOUT: Attempt.Outcome
    INTERRUPTION: Attempt.Outcome
    CANCELLATION: Attempt.Outcome
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    LATENESS_FIELD_NUMBER: _ClassVar[int]
    number: int
    id: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    worker: str
    outcome: Attempt.Outcome
    error: str
    occurrence_time: _timestamp_pb2.Timestamp
    scheduled_time: _timestamp_pb2.Timestamp
    lateness: _duration_pb2.Duration
    def __init__(self, number: _Optional[int] = ..., id: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., worker: _Optional[str] = ..., outcome: _Optional[_Union[Attempt.Outcome, str]] = ..., error: _Optional[str] = ..., occurrence_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., lateness: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
