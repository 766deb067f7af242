"""Every field that a user sends, and what it must be. The numbers are in `limits.py`, the words in `docs/api.md`.

`violations_of` looks at a request as it came. What depends on the time, or on what is stored, is looked at later, by
`spec_violations` (a spec after a partial update) and `timing_violations` (a spec whose defaults were filled in).
"""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from clepsydra.core import limits
from clepsydra.core.moments import END_OF_TIME_US, duration_us
from clepsydra.core.schedule import first_occurrence
from clepsydra.core.update_mask import mask_path
from clepsydra.core.validation_http import HTTP_REQUEST
from clepsydra.core.validation_rules import (
    FINE,
    FieldViolation,
    Rule,
    Violations,
    anything,
    both,
    choice,
    familiar,
    few,
    lasting,
    length,
    message,
    moment,
    number,
    repeated,
    text,
    under,
    wrong,
)
from clepsydra.v1 import action_pb2, scheduler_pb2
from clepsydra.v1.action_pb2 import Schedule, Spec

__all__ = [
    "CONTENT_TYPE",
    "DELAY",
    "HANDLER_NAME",
    "ID",
    "LABELS",
    "PAYLOAD",
    "REQUEST_ID",
    "FieldViolation",
    "Violations",
    "spec_violations",
    "timing_violations",
    "under",
    "violations_of",
]


def _name(at_most: int) -> Rule:
    return text(rf"[\x21-\x7e]{{1,{at_most}}}", f"1 to {at_most} characters of visible ASCII, without blanks")


ID = _name(limits.ID_LENGTH)
REQUEST_ID = _name(limits.REQUEST_ID_LENGTH)
_ETAG = _name(limits.ETAG_LENGTH)

_LABEL_KEY = text(
    rf"[0-9A-Za-z][0-9A-Za-z._/-]{{0,{limits.LABEL_KEY_LENGTH - 1}}}",
    f"named by 1 to {limits.LABEL_KEY_LENGTH} letters, digits, '.', '_', '/' and '-', a letter or digit first",
)
_LABEL_VALUE = text(
    rf"[^\x00-\x1f\x7f]{{0,{limits.LABEL_VALUE_LENGTH}}}",
    f"at most {limits.LABEL_VALUE_LENGTH} characters, none of them a control character",
)
_LABEL_KEY_SHOWN = 32
_TOO_MANY_LABELS = wrong(f"must not have more than {limits.LABELS} entries")


def _labels(labels: Mapping[str, str]) -> Violations:
    if len(labels) > limits.LABELS:
        return _TOO_MANY_LABELS
    found = FINE
    # Of protobuf's maps, items() costs three times as much.
    for key in labels:
        violations = _LABEL_KEY(key) or _LABEL_VALUE(labels[key])
        if violations:
            found += under(f"[{json.dumps(_shown(key), ensure_ascii=False)}]", violations)
    return found


LABELS: Rule = _labels


def _shown(key: str) -> str:
    """So much of a key that it is recognised, and what is wrong with it still has room in the message."""
    return key if len(key) <= _LABEL_KEY_SHOWN else key[: _LABEL_KEY_SHOWN - 1] + "…"


# In requests, what the scheduler writes itself is ignored: an action that was read can be sent back.
_META_FIELDS: dict[str, Rule] = {
    "id": ID,
    "guid": anything,
    "revision": anything,
    "etag": anything,
    "create_time": anything,
    "update_time": anything,
    "labels": LABELS,
    "applied_requests": anything,
}

_PERIODIC = message(
    action_pb2.Periodic,
    {
        "interval": lasting(limits.INTERVAL_MIN_US, limits.INTERVAL_MAX_US),
        "mode": choice(dict(action_pb2.Periodic.Mode.items())),
        "end_time": moment,
        "max_runs": number(0, limits.RUNS_MAX),
    },
    required=["interval"],
)

DELAY = lasting(0, limits.DELAY_MAX_US)

_SCHEDULE = message(
    Schedule,
    {
        "start_time": moment,
        "delay": DELAY,
        "once": message(action_pb2.Once, {}),
        "periodic": _PERIODIC,
    },
)

_SHORTER_THAN_FIRST = wrong("must not be shorter than first_delay", "max_delay")


def _delays_grow(retry: action_pb2.RetryPolicy) -> Violations:
    if retry.HasField("max_delay") and duration_us(retry.max_delay) < duration_us(retry.first_delay):
        return _SHORTER_THAN_FIRST
    return FINE


_RETRY = both(
    message(
        action_pb2.RetryPolicy,
        {
            "first_delay": lasting(0, limits.RETRY_DELAY_MAX_US),
            "multiplier": number(limits.RETRY_MULTIPLIER_MIN, limits.RETRY_MULTIPLIER_MAX),
            "max_delay": lasting(0, limits.RETRY_DELAY_MAX_US),
            "jitter": number(0, 1),
            "max_attempts": number(0, limits.RETRY_ATTEMPTS_MAX),
            "max_elapsed": lasting(0, limits.RETRY_ELAPSED_MAX_US),
        },
    ),
    _delays_grow,
)

_RETENTION = message(
    action_pb2.Retention,
    {
        "after_success": lasting(0, limits.RETENTION_MAX_US),
        "after_failure": lasting(0, limits.RETENTION_MAX_US),
    },
)

HANDLER_NAME = familiar(
    both(
        length(limits.HANDLER_NAME_LENGTH, "characters"),
        text(limits.HANDLER_NAME_PATTERN, "letters, digits, '_', '.', ':', '/' and '-'"),
    )
)
PAYLOAD = length(limits.PAYLOAD_BYTES, "bytes")
CONTENT_TYPE = familiar(
    both(
        length(limits.CONTENT_TYPE_LENGTH, "characters"),
        text(r"[!-.0-~]+/[!-:<-~]+(?: *;[\x20-\x7e]*)?", "a media type such as application/json"),
    )
)

_HANDLER = message(
    action_pb2.PythonHandler,
    {"name": HANDLER_NAME, "payload": PAYLOAD, "content_type": CONTENT_TYPE},
    required=["name"],
)

_LOG = message(action_pb2.LogLine, {"message": length(limits.LOG_MESSAGE_LENGTH, "characters")})

_SPEC = message(
    Spec,
    {
        "schedule": _SCHEDULE,
        "retry": _RETRY,
        "attempt_timeout": lasting(limits.ATTEMPT_TIMEOUT_MIN_US, limits.ATTEMPT_TIMEOUT_MAX_US),
        "start_deadline": lasting(limits.START_DEADLINE_MIN_US, limits.START_DEADLINE_MAX_US),
        "retention": _RETENTION,
        "interruption_limit": number(0, limits.INTERRUPTIONS_MAX),
        "http": HTTP_REQUEST,
        "handler": _HANDLER,
        "log": _LOG,
    },
    required=["target"],
)


def _action(spec: Rule, *, required: tuple[str, ...], required_of_meta: tuple[str, ...] = ()) -> Rule:
    meta = message(action_pb2.Meta, _META_FIELDS, required=required_of_meta)
    return message(action_pb2.ScheduledAction, {"meta": meta, "spec": spec, "status": anything}, required=required)


_CREATE = message(
    scheduler_pb2.CreateActionRequest,
    {
        "action": _action(_SPEC, required=("spec",)),
        "request_id": REQUEST_ID,
        "validate_only": anything,
    },
    required=["action"],
)

_UPDATE_MASK = message(FieldMask, {"paths": repeated(mask_path, limits.UPDATE_MASK_PATHS)})


def _update(spec: Rule, *, required: tuple[str, ...]) -> Rule:
    return message(
        scheduler_pb2.UpdateActionRequest,
        {
            "action": _action(spec, required=required, required_of_meta=("id",)),
            "update_mask": _UPDATE_MASK,
            "allow_missing": anything,
            "etag": _ETAG,
            "request_id": REQUEST_ID,
            "validate_only": anything,
        },
        required=["action"],
    )


_UPDATE_OF_ALL = _update(_SPEC, required=("meta", "spec"))
# What the mask leaves out of the spec is not looked at, and what it takes is judged after the merge.
_UPDATE_OF_PARTS = _update(anything, required=("meta",))


def _update_request(request: scheduler_pb2.UpdateActionRequest) -> Violations:
    return _UPDATE_OF_PARTS(request) if request.update_mask.paths else _UPDATE_OF_ALL(request)


def _change(kind: type[Message]) -> Rule:
    """Pause, resume and run are asked for in the same words."""
    return message(kind, {"id": ID, "etag": _ETAG, "request_id": REQUEST_ID}, required=["id"])


def _batch(kind: type[Message]) -> Rule:
    """Items are looked at one by one, because each has its own outcome."""
    return message(kind, {"requests": few(limits.BATCH_ITEMS)})


_RULES: dict[type[Message], Rule] = {
    scheduler_pb2.CreateActionRequest: _CREATE,
    scheduler_pb2.GetActionRequest: message(scheduler_pb2.GetActionRequest, {"id": ID}, required=["id"]),
    scheduler_pb2.ListActionsRequest: message(
        scheduler_pb2.ListActionsRequest,
        {
            "page_size": number(0, limits.PAGE_SIZE_MAX),
            "page_token": length(limits.PAGE_TOKEN_LENGTH, "characters"),
        },
    ),
    scheduler_pb2.UpdateActionRequest: _update_request,
    scheduler_pb2.DeleteActionRequest: message(
        scheduler_pb2.DeleteActionRequest,
        {
            "id": ID,
            "etag": _ETAG,
            "allow_missing": anything,
            "request_id": REQUEST_ID,
            "validate_only": anything,
        },
        required=["id"],
    ),
    scheduler_pb2.BatchCreateActionsRequest: _batch(scheduler_pb2.BatchCreateActionsRequest),
    scheduler_pb2.BatchDeleteActionsRequest: _batch(scheduler_pb2.BatchDeleteActionsRequest),
    scheduler_pb2.PauseActionRequest: _change(scheduler_pb2.PauseActionRequest),
    scheduler_pb2.ResumeActionRequest: _change(scheduler_pb2.ResumeActionRequest),
    scheduler_pb2.RunActionRequest: _change(scheduler_pb2.RunActionRequest),
}


def violations_of(request: Any) -> Violations:
    """What is wrong with a request, as far as the request alone can tell. Nothing: an empty tuple."""
    return _RULES[type(request)](request)


def spec_violations(spec: Spec) -> Violations:
    """What is wrong with a whole spec, by paths as seen from the request that brought it."""
    violations = _SPEC(spec)
    return under("action.spec", violations) if violations else FINE


_BEYOND_TIME = "would bring the first occurrence to 2100-01-01T00:00:00Z or later"
_NO_OCCURRENCE = wrong("must not lie before the first occurrence: none would be left", "periodic.end_time")


def timing_violations(schedule: Schedule, given: str | None, now_us: int) -> Violations:
    """What is wrong, at this time, with a schedule that was filled in; `given` is how the user gave its start."""
    first_us = first_occurrence(schedule, now_us)
    if first_us is not None and first_us < END_OF_TIME_US:
        return FINE
    if schedule.periodic.HasField("end_time"):
        return under("action.spec.schedule", _NO_OCCURRENCE)
    return under("action.spec.schedule", wrong(_BEYOND_TIME, given or "periodic.interval"))
