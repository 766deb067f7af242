"""The one table from errors to status codes, and the details that come along.

Details travel in HTTP/2 headers, which clients bound to about 8 KiB: what is listed in them is bounded here.
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
    OutcomeUnknown,
    Overloaded,
    SchedulerError,
    StoreUnavailable,
    WrongState,
)

DOMAIN = "clepsydra"

# The reason stands in google.rpc.ErrorInfo, for programs: it tells the two kinds of UNAVAILABLE apart.
_CODES: dict[type[SchedulerError], tuple[Code, str]] = {
    InvalidArgument: (Code.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
    NotFound: (Code.NOT_FOUND, "NOT_FOUND"),
    AlreadyExists: (Code.ALREADY_EXISTS, "ALREADY_EXISTS"),
    EtagMismatch: (Code.ABORTED, "ETAG_MISMATCH"),
    WrongState: (Code.FAILED_PRECONDITION, "WRONG_STATE"),
    Overloaded: (Code.RESOURCE_EXHAUSTED, "OVERLOADED"),
    DeadlinePassed: (Code.DEADLINE_EXCEEDED, "DEADLINE_PASSED"),
    StoreUnavailable: (Code.UNAVAILABLE, "NOT_DONE"),
    OutcomeUnknown: (Code.UNAVAILABLE, "OUTCOME_UNKNOWN"),
    Damaged: (Code.DATA_LOSS, "DAMAGED"),
}

_VIOLATIONS_LISTED = 8
_TEXT_LENGTH = 256


def status_of(error: SchedulerError) -> Status:
    code, reason = _CODES[type(error)]
    status = Status(code=code, message=_cut(str(error), 2 * _TEXT_LENGTH))
    if isinstance(error, InvalidArgument):
        status.details.append(_packed(_bad_request(error)))
    status.details.append(_packed(ErrorInfo(reason=reason, domain=DOMAIN)))
    return status


def _bad_request(error: InvalidArgument) -> BadRequest:
    details = BadRequest()
    for path, description in error.violations[:_VIOLATIONS_LISTED]:
        details.field_violations.add(field=_cut(path, _TEXT_LENGTH), description=_cut(description, _TEXT_LENGTH))
    return details


def _packed(detail: BadRequest | ErrorInfo) -> Any:
    packed = Any()
    packed.Pack(detail)
    return packed


def _cut(text: str, at_most: int) -> str:
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
