"""What every request of the API must be. `docs/api.md` says the same in words.

`violations_of` checks a request by itself. What depends on the time or on the stored action is checked later:
`spec_violations` checks a spec after a partial update, `timing_violations` (in `action/spec.py`) a schedule against the
present time.
"""

import json
from collections.abc import Mapping
from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

from clepsydra.core import limits
from clepsydra.core.action import spec as action_spec
from clepsydra.core.action.imported import STATUS_RULE
from clepsydra.core.action.update_mask import mask_path
from clepsydra.core.validation.rules import (
    VALID,
    Rule,
    Violations,
    any_value,
    at_most,
    choice,
    length,
    message,
    number,
    repeated,
    text,
    time_in_range,
    under,
    violation,
)
from clepsydra.v1 import action_pb2, scheduler_pb2
from clepsydra.v1.action_pb2 import Spec


def _name(longest: int) -> Rule:
    return text(rf"[\x21-\x7e]{{1,{longest}}}", f"1 to {longest} characters of visible ASCII, without blanks")


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
_TOO_MANY_LABELS = violation(f"must not have more than {limits.LABELS} entries")


def labels(given: Mapping[str, str]) -> Violations:
    """The rule for labels."""
    if len(given) > limits.LABELS:
        return _TOO_MANY_LABELS
    found = VALID
    # items() of a protobuf map takes three times as long.
    for key in given:
        violations = _LABEL_KEY(key) or _LABEL_VALUE(given[key])
        if violations:
            found += under(f"[{json.dumps(_shortened(key), ensure_ascii=False)}]", violations)
    return found


def _shortened(key: str) -> str:
    """Enough of a key to recognise it, so that the message has room for what is wrong."""
    return key if len(key) <= _LABEL_KEY_SHOWN else key[: _LABEL_KEY_SHOWN - 1] + "…"


# Output-only fields are ignored in requests, so that an action that was read can be sent back.
_META_FIELDS: dict[str, Rule] = {
    "id": ID,
    "guid": any_value,
    "revision": any_value,
    "etag": any_value,
    "create_time": any_value,
    "update_time": any_value,
    "labels": labels,
    "applied_requests": any_value,
}


_ACTION_FIELDS: dict[str, Rule] = {"status": any_value, "running": any_value, "plan_effect": any_value}


def _action(spec: Rule, *, required: tuple[str, ...], required_of_meta: tuple[str, ...] = ()) -> Rule:
    meta = message(action_pb2.Meta, _META_FIELDS, required=required_of_meta)
    return message(action_pb2.ScheduledAction, {**_ACTION_FIELDS, "meta": meta, "spec": spec}, required=required)


CREATE = message(
    scheduler_pb2.CreateActionRequest,
    {
        "action": _action(action_spec.RULE, required=("spec",)),
        "request_id": REQUEST_ID,
        "validate_only": any_value,
    },
    required=["action"],
)

_IMPORTED_META = message(
    action_pb2.Meta, {**_META_FIELDS, "guid": _name(limits.ETAG_LENGTH), "create_time": time_in_range}, required=["id"]
)
_IMPORT = message(
    scheduler_pb2.ImportActionRequest,
    {
        "action": message(
            action_pb2.ScheduledAction,
            {**_ACTION_FIELDS, "meta": _IMPORTED_META, "spec": action_spec.RULE, "status": STATUS_RULE},
            required=["meta", "spec", "status"],
        ),
        "existing": choice(dict(scheduler_pb2.ImportActionRequest.Existing.items())),
        "request_id": REQUEST_ID,
        "validate_only": any_value,
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
            "allow_missing": any_value,
            "etag": _ETAG,
            "request_id": REQUEST_ID,
            "validate_only": any_value,
        },
        required=["action"],
    )


_WHOLE_UPDATE = _update(action_spec.RULE, required=("meta", "spec"))
# The spec is checked after the merge with the stored one, and only the parts that the mask names.
_MASKED_UPDATE = _update(any_value, required=("meta",))


def _update_request(request: scheduler_pb2.UpdateActionRequest) -> Violations:
    return _MASKED_UPDATE(request) if request.update_mask.paths else _WHOLE_UPDATE(request)


def _command(kind: type[Message]) -> Rule:
    """Pause, resume and run have the same fields."""
    return message(kind, {"id": ID, "etag": _ETAG, "request_id": REQUEST_ID}, required=["id"])


def _batch(kind: type[Message]) -> Rule:
    """Items are checked one by one, because each has its own outcome."""
    return message(kind, {"requests": at_most(limits.BATCH_ITEMS)})


_RULES: dict[type[Message], Rule] = {
    scheduler_pb2.CreateActionRequest: CREATE,
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
            "allow_missing": any_value,
            "request_id": REQUEST_ID,
            "validate_only": any_value,
        },
        required=["id"],
    ),
    scheduler_pb2.BatchCreateActionsRequest: _batch(scheduler_pb2.BatchCreateActionsRequest),
    scheduler_pb2.BatchDeleteActionsRequest: _batch(scheduler_pb2.BatchDeleteActionsRequest),
    scheduler_pb2.ImportActionRequest: _IMPORT,
    scheduler_pb2.ImportActionsRequest: _batch(scheduler_pb2.ImportActionsRequest),
    scheduler_pb2.PauseActionRequest: _command(scheduler_pb2.PauseActionRequest),
    scheduler_pb2.ResumeActionRequest: _command(scheduler_pb2.ResumeActionRequest),
    scheduler_pb2.RunActionRequest: _command(scheduler_pb2.RunActionRequest),
    scheduler_pb2.CancelActionRequest: message(
        scheduler_pb2.CancelActionRequest,
        {"id": ID, "etag": _ETAG, "request_id": REQUEST_ID, "occurrence_time": time_in_range},
        required=["id"],
    ),
    scheduler_pb2.ExplainActionRequest: message(scheduler_pb2.ExplainActionRequest, {"id": ID}, required=["id"]),
}


def violations_of(request: Any) -> Violations:
    """What is wrong with a request, as far as the request alone shows. Empty: nothing."""
    return _RULES[type(request)](request)


def spec_violations(spec: Spec) -> Violations:
    """What is wrong with a whole spec, by paths as seen from the request that brought it."""
    violations = action_spec.RULE(spec)
    return under("action.spec", violations) if violations else VALID
