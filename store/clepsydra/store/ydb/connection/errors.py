"""What one failed try means: certainly nothing was done, or the outcome is unknown.

"Certainly nothing" needs evidence. A request that was never sent did nothing, and neither did a read. For a write that
was sent, only the server's own word counts, and only where its documentation leaves no other reading: it aborted the
transaction, it was too busy to begin, it does not know the session, or it refused the text. After every other error the
write may have been done. That includes the server's UNAVAILABLE: the SDK raises the same error for a broken connection.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import ydb

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable

# Part of the message of the check that the text of `put` makes.
TOO_LATE = "clepsydra: a put is too late"

# Part of the server's message if a batch, with what it found stored, is more than the server keeps in memory.
_TOO_LARGE = "ntermediate data materialization exceeded size limit"

_MESSAGE_LENGTH = 300


class Aborted(Unavailable):
    """Nothing was done, and a smaller transaction may succeed: another one changed what this one had read, or this one
    found more in store than the server keeps in memory.
    """


class TooLate(Unavailable):
    """Nothing was done, because one put of the batch is older than a call may be retried."""


_REFUSALS: dict[type[Exception], type[StoreError]] = {
    ydb.issues.Aborted: Aborted,
    ydb.issues.Overloaded: Unavailable,
    ydb.issues.BadSession: Unavailable,
    ydb.issues.SessionBusy: Unavailable,
    ydb.issues.BadRequest: Unusable,
    ydb.issues.GenericError: Unusable,
    ydb.issues.PreconditionFailed: Unusable,
    ydb.issues.SchemeError: Unusable,
    ydb.issues.Unauthenticated: Unusable,
    ydb.issues.Unauthorized: Unusable,
    ydb.issues.Unimplemented: Unusable,
    ydb.issues.Unsupported: Unusable,
}

_ADVICE: dict[type[Exception], str] = {
    ydb.issues.SchemeError: "make the tables with `clepsydra init`, or check the path in the store's URL",
    ydb.issues.Unauthenticated: "check the credentials",
    ydb.issues.Unauthorized: "ask for permission to read and write the store's directory",
}


def write_failure(error: Exception) -> StoreError:
    """A write was sent and failed."""
    text = " ".join(_texts(error))
    if TOO_LATE in text:
        return TooLate(_reason(error))
    if _TOO_LARGE in text:
        return Aborted(_reason(error))
    return _REFUSALS.get(type(error), OutcomeUnknown)(_reason(error))


def harmless_failure(error: Exception) -> StoreError:
    """Something failed that changed nothing: a read, or a wait for a session or a connection."""
    is_unusable = _REFUSALS.get(type(error)) is Unusable
    return Unusable(_reason(error)) if is_unusable else Unavailable(_reason(error))


def _texts(error: Exception) -> list[str]:
    """What the server says, the cause first; or the SDK's text."""
    issues = getattr(error, "issues", None)
    return list(dict.fromkeys(_messages(issues))) if issues else [str(error)]


def _messages(issues: Iterable[Any]) -> Iterator[str]:
    """The server nests its issues: what it was doing, and within that what went wrong."""
    for issue in issues:
        yield from _messages(issue.issues)
        yield issue.message


def _reason(error: Exception) -> str:
    """One sentence, which begins with the cause."""
    text = " ".join("; ".join(_texts(error)).split())[:_MESSAGE_LENGTH]
    status = getattr(error, "status", None)
    name = type(error).__name__ if status is None else status.name
    advice = _ADVICE.get(type(error))
    return f"{name} {text}".strip() + (f" ({advice})" if advice else "")
