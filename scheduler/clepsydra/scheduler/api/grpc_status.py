"""The one table from errors to gRPC status codes, and the details that go with them.

Details travel in HTTP/2 headers, which clients limit to about 8 KiB, so their size is limited here.
"""

from google.protobuf.any_pb2 import Any
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status

from clepsydra.scheduler.errors import (
    AlreadyExists,
    Damaged,
    DeadlinePassed,
    EtagMismatch,
    InvalidArgument,
    NotFound,
    OccurrenceEnded,
    OutcomeUnknown,
    Overloaded,
    SchedulerError,
    StoreUnavailable,
    WrongState,
)
from clepsydra.v1.scheduler_pb2 import ItemError

DOMAIN = "clepsydra"

# The status code, and the reason in google.rpc.ErrorInfo, by which programs tell the two kinds of UNAVAILABLE apart.
CODES: dict[type[SchedulerError], tuple[str, str]] = {
    InvalidArgument: ("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
    NotFound: ("NOT_FOUND", "NOT_FOUND"),
    AlreadyExists: ("ALREADY_EXISTS", "ALREADY_EXISTS"),
    EtagMismatch: ("ABORTED", "ETAG_MISMATCH"),
    WrongState: ("FAILED_PRECONDITION", "WRONG_STATE"),
    OccurrenceEnded: ("FAILED_PRECONDITION", "OCCURRENCE_ENDED"),
    Overloaded: ("RESOURCE_EXHAUSTED", "OVERLOADED"),
    DeadlinePassed: ("DEADLINE_EXCEEDED", "DEADLINE_PASSED"),
    StoreUnavailable: ("UNAVAILABLE", "NOT_DONE"),
    OutcomeUnknown: ("UNAVAILABLE", "OUTCOME_UNKNOWN"),
    Damaged: ("DATA_LOSS", "DAMAGED"),
}

_MESSAGE_BYTES = 400
_TEXT_BYTES = 200
_VIOLATIONS_BYTES = 3000


def status_of(error: SchedulerError) -> Status:
    code, reason = CODES[type(error)]
    status = Status(code=Code.Value(code), message=_cut(str(error), _MESSAGE_BYTES))
    if isinstance(error, InvalidArgument):
        status.details.append(_packed(_bad_request(error)))
    status.details.append(_packed(ErrorInfo(reason=reason, domain=DOMAIN)))
    return status


def item_error_of(error: SchedulerError, index: int) -> ItemError:
    """The error of one item of a batch, with paths that start at the batch."""
    if isinstance(error, InvalidArgument):
        error = error.under(f"requests[{index}]")
    code, reason = CODES[type(error)]
    item_error = ItemError(code=Code.Value(code), message=_cut(str(error), _MESSAGE_BYTES), reason=reason)
    if isinstance(error, InvalidArgument):
        for each in _bad_request(error).field_violations:
            item_error.field_violations.add(field=each.field, description=each.description)
    return item_error


def _bad_request(error: InvalidArgument) -> BadRequest:
    details = BadRequest()
    for path, description in error.violations:
        details.field_violations.add(field=_cut(path, _TEXT_BYTES), description=_cut(description, _TEXT_BYTES))
        if details.ByteSize() > _VIOLATIONS_BYTES - 2 * _TEXT_BYTES:
            break
    return details


def _packed(detail: BadRequest | ErrorInfo) -> Any:
    packed = Any()
    packed.Pack(detail)
    return packed


def _cut(text: str, at_most: int) -> str:
    raw = text.encode()
    return text if len(raw) <= at_most else raw[: at_most - 3].decode(errors="ignore") + "…"
