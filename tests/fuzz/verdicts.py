"""What an answer may look like: the statuses that docs/api.md documents, and what each has to bring along."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from clepsydra.core.limits import REQUEST_BYTES
from clepsydra.scheduler.api.endpoint import SERVICE
from clepsydra.scheduler.api.grpc_status import CODES
from clepsydra.v1 import scheduler_pb2
from clepsydra.v1.scheduler_pb2 import ItemError

_ETAG = {"NOT_FOUND", "ABORTED"}
_SWITCH = {*_ETAG, "FAILED_PRECONDITION"}
# Beside OK and INVALID_ARGUMENT, for a healthy scheduler that has nothing else to do.
DOCUMENTED: dict[str, set[str]] = {
    "CreateAction": {"ALREADY_EXISTS"},
    "GetAction": {"NOT_FOUND"},
    "ListActions": set(),
    "UpdateAction": _ETAG,
    "DeleteAction": _ETAG,
    "BatchCreateActions": set(),
    "BatchDeleteActions": set(),
    "ImportActions": set(),
    "PauseAction": _SWITCH,
    "ResumeAction": _SWITCH,
    "RunAction": _SWITCH,
    "CancelAction": _SWITCH,
    "ExplainAction": {"NOT_FOUND"},
}
_ITEMS = {"BatchCreateActions": "CreateAction", "BatchDeleteActions": "DeleteAction", "ImportActions": "CreateAction"}
_REASONS = set(CODES.values())
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
# The key of a label may hold anything, and nothing comes after it.
_INDEX = re.compile(r'\["(.|\n)*"\]$|\[[0-9]+\]')


class Call(NamedTuple):
    method: str
    raw: bytes

    @property
    def request_type(self) -> Any:
        return getattr(scheduler_pb2, SERVICE.methods_by_name[self.method].input_type.name)

    def parsed(self) -> Message | None:
        try:
            message: Message = self.request_type.FromString(self.raw)
        except DecodeError:
            return None
        return message


class Answer(NamedTuple):
    code: str
    message: str
    status: Status | None
    response: Message | None


class Wrong(AssertionError):
    """An answer that nobody documented."""


def judge(call: Call, answer: Answer) -> None:
    """Raise if this is no answer to this call."""
    if len(call.raw) > REQUEST_BYTES:
        _require(answer.code == "RESOURCE_EXHAUSTED", "a request that is too large must be refused as such")
    else:
        _require(
            answer.code in {"OK", "INVALID_ARGUMENT", *DOCUMENTED[call.method]}, f"{answer.code} is not documented"
        )
        _judge_error(call, answer)
    for number, error in enumerate(errors_of_items(answer)):
        if error is not None:
            _judge_item(call, number, error)


def errors_of_items(answer: Answer) -> list[ItemError | None]:
    """Of a batch, item by item: how it failed."""
    results = getattr(answer.response, "results", ())
    return [result.error if result.HasField("error") else None for result in results]


def may_write(call: Call, answer: Answer) -> bool:
    """Whether anything of this call was accepted that writes."""
    if answer.code != "OK" or call.method in {"GetAction", "ListActions", "ExplainAction"}:
        return False
    request: Any = call.parsed()
    if call.method in _ITEMS:
        errors = errors_of_items(answer)
        return any(
            error is None and not item.validate_only for item, error in zip(request.requests, errors, strict=True)
        )
    return not getattr(request, "validate_only", False)


def must_write(call: Call, answer: Answer) -> bool:
    """Whether this call has certainly changed the store: a create that cannot be a replay of another."""
    request: Any = call.parsed()
    return call.method == "CreateAction" and may_write(call, answer) and not request.request_id


def _judge_error(call: Call, answer: Answer) -> None:
    request = call.parsed()
    if request is None:
        _require(answer.code == "INVALID_ARGUMENT", "what cannot be parsed is an invalid argument")
    if answer.code == "OK":
        items = getattr(request, "requests", None)
        if items is not None:
            _require(len(items) == len(errors_of_items(answer)), "a batch has a result for every item")
        return
    _require(answer.status is not None, "an error has details")
    assert answer.status is not None
    info, bad = ErrorInfo(), BadRequest()
    for detail in answer.status.details:
        detail.Unpack(info) or detail.Unpack(bad)
    _require(info.domain == "clepsydra", "the domain tells whose reason it is")
    _judge_details(answer.code, answer.status.message, info.reason, bad.field_violations, call)


def _judge_item(call: Call, number: int, error: ItemError) -> None:
    code = _CODES[error.code]
    _require(code in {"INVALID_ARGUMENT", *DOCUMENTED[_ITEMS[call.method]]}, f"{code} is not documented for an item")
    _judge_details(code, error.message, error.reason, error.field_violations, call)
    if code == "INVALID_ARGUMENT":
        _require(error.message.startswith(f"requests[{number}]"), "the item is named")


def _judge_details(code: str, message: str, reason: str, violations: Sequence[Any], call: Call) -> None:
    request = call.request_type.DESCRIPTOR
    _require(bool(message), "an error has a message")
    _require((code, reason) in _REASONS, "the reason tells what the code tells")
    if code != "INVALID_ARGUMENT":
        return
    _require(bool(violations), "an invalid argument names fields")
    for violation in violations:
        _require(bool(violation.description), f"{violation.field} is said to be wrong, and not how")
        _require(not violation.field or names_a_field(request, violation.field), f"{violation.field!r} is no field")
    # What is wrong with the request as a whole, such as bytes that are no message, is no field's.
    first = violations[0]
    said = f"{first.field}: {first.description}" if first.field else f"the request {first.description}"
    _require(message.startswith(said.removesuffix("…")), "the message says which field is wrong, and how")


def names_a_field(descriptor: Descriptor | None, path: str) -> bool:
    """Whether there is such a path, from the request; indices, keys and names of oneofs included.

    >>> update = scheduler_pb2.UpdateActionRequest.DESCRIPTOR
    >>> [names_a_field(update, path) for path in ('action.meta.labels["a"]', "action.spec.target", "action.soul", "")]
    [True, True, False, False]
    """
    for name in _INDEX.sub("", path).split("."):
        if descriptor is None:
            return False
        if name in descriptor.oneofs_by_name:
            descriptor = None
        elif name in descriptor.fields_by_name:
            descriptor = descriptor.fields_by_name[name].message_type
        else:
            return False
    return True


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Wrong(sentence)
