"""Errors of the endpoint: a status of YDB, and a message."""

from enum import IntEnum


class Status(IntEnum):
    """YDB's status codes."""

    SUCCESS = 400000
    BAD_REQUEST = 400010
    UNAUTHORIZED = 400020
    INTERNAL_ERROR = 400030
    ABORTED = 400040
    UNAVAILABLE = 400050
    OVERLOADED = 400060
    SCHEME_ERROR = 400070
    GENERIC_ERROR = 400080
    TIMEOUT = 400090
    BAD_SESSION = 400100
    PRECONDITION_FAILED = 400120
    ALREADY_EXISTS = 400130
    NOT_FOUND = 400140
    SESSION_EXPIRED = 400150
    CANCELLED = 400160
    UNDETERMINED = 400170
    UNSUPPORTED = 400180
    SESSION_BUSY = 400190


class Refused(Exception):
    """The endpoint refuses a request."""

    def __init__(self, status: Status, message: str, within: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        # What the server was doing when it met the cause: issues around that of the cause, the outermost first.
        self.within = within


# A text is checked against the schema function by function.
_CHECK = ("Type annotation", "At function: KiReadTable!")


def wrong_text(message: str) -> Refused:
    """The text cannot be compiled."""
    return Refused(Status.GENERIC_ERROR, message, _CHECK)


def missing_table(path: str) -> Refused:
    reason = "because it does not exist or you do not have access permissions. Please check correctness of table path."
    return Refused(Status.SCHEME_ERROR, f"Cannot find table '{path}' {reason}", _CHECK)
