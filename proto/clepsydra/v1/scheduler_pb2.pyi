import datetime

from clepsydra.v1 import action_pb2 as _action_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateActionRequest(_message.Message):
    __slots__ = ("action", "request_id", "validate_only")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    action: _action_pb2.ScheduledAction
    request_id: str
    validate_only: bool
    def __init__(self, action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class GetActionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ListActionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListActionsResponse(_message.Message):
    __slots__ = ("actions", "next_page_token")
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[_action_pb2.ScheduledAction]
    next_page_token: str
    def __init__(self, actions: _Optional[_Iterable[_Union[_action_pb2.ScheduledAction, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateActionRequest(_message.Message):
    __slots__ = ("action", "update_mask", "allow_missing", "etag", "request_id", "validate_only")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    action: _action_pb2.ScheduledAction
    update_mask: _field_mask_pb2.FieldMask
    allow_missing: bool
    etag: str
    request_id: str
    validate_only: bool
    def __init__(self, action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., allow_missing: bool = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class DeleteActionRequest(_message.Message):
    __slots__ = ("id", "etag", "allow_missing", "request_id", "validate_only")
    ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    id: str
    etag: str
    allow_missing: bool
    request_id: str
    validate_only: bool
    def __init__(self, id: _Optional[str] = ..., etag: _Optional[str] = ..., allow_missing: bool = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class DeleteActionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ItemError(_message.Message):
    __slots__ = ("code", "message", "reason", "field_violations")
    class FieldViolation(_message.Message):
        __slots__ = ("field", "description")
        FIELD_FIELD_NUMBER: _ClassVar[int]
        DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
        field: str
        description: str
        def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    reason: str
    field_violations: _containers.RepeatedCompositeFieldContainer[ItemError.FieldViolation]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., reason: _Optional[str] = ..., field_violations: _Optional[_Iterable[_Union[ItemError.FieldViolation, _Mapping]]] = ...) -> None: ...

class BatchCreateActionsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[CreateActionRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[CreateActionRequest, _Mapping]]] = ...) -> None: ...

class BatchCreateActionsResponse(_message.Message):
    __slots__ = ("results",)
    class Result(_message.Message):
        __slots__ = ("action", "error")
        ACTION_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        action: _action_pb2.ScheduledAction
        error: ItemError
        def __init__(self, action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[BatchCreateActionsResponse.Result]
    def __init__(self, results: _Optional[_Iterable[_Union[BatchCreateActionsResponse.Result, _Mapping]]] = ...) -> None: ...

class BatchDeleteActionsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[DeleteActionRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[DeleteActionRequest, _Mapping]]] = ...) -> None: ...

class BatchDeleteActionsResponse(_message.Message):
    __slots__ = ("results",)
    class Result(_message.Message):
        __slots__ = ("deleted", "error")
        DELETED_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        deleted: DeleteActionResponse
        error: ItemError
        def __init__(self, deleted: _Optional[_Union[DeleteActionResponse, _Mapping]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[BatchDeleteActionsResponse.Result]
    def __init__(self, results: _Optional[_Iterable[_Union[BatchDeleteActionsResponse.Result, _Mapping]]] = ...) -> None: ...

class ImportActionRequest(_message.Message):
    __slots__ = ("action", "existing", "request_id", "validate_only")
    class Existing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        EXISTING_UNSPECIFIED: _ClassVar[ImportActionRequest.Existing]
        SKIP: _ClassVar[ImportActionRequest.Existing]
        REPLACE: _ClassVar[ImportActionRequest.Existing]
        ERROR: _ClassVar[ImportActionRequest.Existing]
    EXISTING_UNSPECIFIED: ImportActionRequest.Existing
    SKIP: ImportActionRequest.Existing
    REPLACE: ImportActionRequest.Existing
    ERROR: ImportActionRequest.Existing
    ACTION_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    action: _action_pb2.ScheduledAction
    existing: ImportActionRequest.Existing
    request_id: str
    validate_only: bool
    def __init__(self, action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., existing: _Optional[_Union[ImportActionRequest.Existing, str]] = ..., request_id: _Optional[str] = ..., validate_only: bool = ...) -> None: ...

class ImportActionsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[ImportActionRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[ImportActionRequest, _Mapping]]] = ...) -> None: ...

class ImportActionsResponse(_message.Message):
    __slots__ = ("results",)
    class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTCOME_UNSPECIFIED: _ClassVar[ImportActionsResponse.Outcome]
        CREATED: _ClassVar[ImportActionsResponse.Outcome]
        REPLACED: _ClassVar[ImportActionsResponse.Outcome]
        SKIPPED: _ClassVar[ImportActionsResponse.Outcome]
        REPEATED: _ClassVar[ImportActionsResponse.Outcome]
    OUTCOME_UNSPECIFIED: ImportActionsResponse.Outcome
    CREATED: ImportActionsResponse.Outcome
    REPLACED: ImportActionsResponse.Outcome
    SKIPPED: ImportActionsResponse.Outcome
    REPEATED: ImportActionsResponse.Outcome
    class Result(_message.Message):
        __slots__ = ("outcome", "error")
        OUTCOME_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        outcome: ImportActionsResponse.Outcome
        error: ItemError
        def __init__(self, outcome: _Optional[_Union[ImportActionsResponse.Outcome, str]] = ..., error: _Optional[_Union[ItemError, _Mapping]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[ImportActionsResponse.Result]
    def __init__(self, results: _Optional[_Iterable[_Union[ImportActionsResponse.Result, _Mapping]]] = ...) -> None: ...

class PauseActionRequest(_message.Message):
    __slots__ = ("id", "etag", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    etag: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResumeActionRequest(_message.Message):
    __slots__ = ("id", "etag", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    etag: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RunActionRequest(_message.Message):
    __slots__ = ("id", "etag", "request_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    etag: str
    request_id: str
    def __init__(self, id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class CancelActionRequest(_message.Message):
    __slots__ = ("id", "etag", "request_id", "occurrence_time")
    ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OCCURRENCE_TIME_FIELD_NUMBER: _ClassVar[int]
    id: str
    etag: str
    request_id: str
    occurrence_time: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., etag: _Optional[str] = ..., request_id: _Optional[str] = ..., occurrence_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CancelActionResponse(_message.Message):
    __slots__ = ("action", "cancelled")
    class Cancelled(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CANCELLED_UNSPECIFIED: _ClassVar[CancelActionResponse.Cancelled]
        RUNNING_ATTEMPT: _ClassVar[CancelActionResponse.Cancelled]
        WAITING_OCCURRENCE: _ClassVar[CancelActionResponse.Cancelled]
    CANCELLED_UNSPECIFIED: CancelActionResponse.Cancelled
    RUNNING_ATTEMPT: CancelActionResponse.Cancelled
    WAITING_OCCURRENCE: CancelActionResponse.Cancelled
    ACTION_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    action: _action_pb2.ScheduledAction
    cancelled: CancelActionResponse.Cancelled
    def __init__(self, action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., cancelled: _Optional[_Union[CancelActionResponse.Cancelled, str]] = ...) -> None: ...

class ExplainActionRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ExplainActionResponse(_message.Message):
    __slots__ = ("answer", "reason", "time", "action", "row", "lock", "waits_for", "stages", "next")
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    LOCK_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    answer: str
    reason: str
    time: _timestamp_pb2.Timestamp
    action: _action_pb2.ScheduledAction
    row: QueueRow
    lock: ShardLock
    waits_for: str
    stages: _containers.RepeatedCompositeFieldContainer[Stage]
    next: str
    def __init__(self, answer: _Optional[str] = ..., reason: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., action: _Optional[_Union[_action_pb2.ScheduledAction, _Mapping]] = ..., row: _Optional[_Union[QueueRow, _Mapping]] = ..., lock: _Optional[_Union[ShardLock, _Mapping]] = ..., waits_for: _Optional[str] = ..., stages: _Optional[_Iterable[_Union[Stage, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class QueueRow(_message.Message):
    __slots__ = ("queue", "shard", "scheduled_time")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    queue: str
    shard: int
    scheduled_time: _timestamp_pb2.Timestamp
    def __init__(self, queue: _Optional[str] = ..., shard: _Optional[int] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ShardLock(_message.Message):
    __slots__ = ("held", "worker", "since_time", "heartbeat_time")
    HELD_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    held: bool
    worker: str
    since_time: _timestamp_pb2.Timestamp
    heartbeat_time: _timestamp_pb2.Timestamp
    def __init__(self, held: bool = ..., worker: _Optional[str] = ..., since_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Stage(_message.Message):
    __slots__ = ("name", "time", "took", "made_it_late")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    TOOK_FIELD_NUMBER: _ClassVar[int]
    MADE_IT_LATE_FIELD_NUMBER: _ClassVar[int]
    name: str
    time: _timestamp_pb2.Timestamp
    took: _duration_pb2.Duration
    made_it_late: bool
    def __init__(self, name: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., took: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., made_it_late: bool = ...) -> None: ...
