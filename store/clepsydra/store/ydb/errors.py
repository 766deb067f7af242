"""What a failed try means: was it done, for certain not, or does nobody know?

"Certainly not" needs evidence. Before a request is handed to the connection nothing can have been done. After that,
only the server's own word counts, and only where its documentation has no other reading: it aborted the transaction,
it was too busy to begin, it does not know the session, or it refused the text. Everything else may have been done, the
server's UNAVAILABLE included: the SDK gives the same error for a connection that broke.
"""

from enum import Enum

import ydb

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable

# Part of the message of the check that `put` makes.
TOO_LATE = "clepsydra: a put is too late"

_MESSAGE_LENGTH = 300


class Nature(Enum):
    # Others were faster: nothing was done, and a smaller transaction may get through.
    ABORTED = "aborted"
    # Nothing was done, and it can be tried again.
    NOT_DONE = "not done"
    UNKNOWN = "unknown"
    # Nothing was done, and trying again will not help.
    HOPELESS = "hopeless"
    # Nothing was done, because the put is older than a call may be retried.
    TOO_LATE = "too late"


class Failed(Exception):
    """One try failed."""

    def __init__(self, nature: Nature, reason: str) -> None:
        super().__init__(reason)
        self.nature = nature


_NATURES: dict[type[Exception], Nature] = {
    ydb.issues.Aborted: Nature.ABORTED,
    ydb.issues.Overloaded: Nature.NOT_DONE,
    ydb.issues.BadSession: Nature.NOT_DONE,
    ydb.issues.SessionBusy: Nature.NOT_DONE,
    ydb.issues.BadRequest: Nature.HOPELESS,
    ydb.issues.GenericError: Nature.HOPELESS,
    ydb.issues.PreconditionFailed: Nature.HOPELESS,
    ydb.issues.SchemeError: Nature.HOPELESS,
    ydb.issues.Unauthenticated: Nature.HOPELESS,
    ydb.issues.Unauthorized: Nature.HOPELESS,
    ydb.issues.Unimplemented: Nature.HOPELESS,
    ydb.issues.Unsupported: Nature.HOPELESS,
}

_HINTS: dict[type[Exception], str] = {
    ydb.issues.SchemeError: "make the tables with `clepsydra init`, or check the path in the store's URL",
    ydb.issues.Unauthenticated: "check the credentials",
    ydb.issues.Unauthorized: "ask for permission to read and write the store's directory",
}


def before_sending(error: Exception) -> Failed:
    """The request never left: what failed was the wait for a session or a connection."""
    nature = _NATURES.get(type(error), Nature.NOT_DONE)
    return Failed(Nature.HOPELESS if nature is Nature.HOPELESS else Nature.NOT_DONE, _reason(error))


def after_sending(error: Exception) -> Failed:
    if TOO_LATE in str(error):
        return Failed(Nature.TOO_LATE, _reason(error))
    return Failed(_NATURES.get(type(error), Nature.UNKNOWN), _reason(error))


def given_up(failed: Failed, location: object, *, may_be_done: bool) -> StoreError:
    """What the caller is told when there is no further try. `may_be_done` speaks of all tries, not of the last one."""
    what = f"the store {location} failed: {failed}"
    if may_be_done:
        return OutcomeUnknown(f"{what}; an earlier try may have taken effect, so repeat the call as it was")
    if failed.nature is Nature.HOPELESS:
        return Unusable(what)
    return Unavailable(f"{what}; try again")


def _reason(error: Exception) -> str:
    """One sentence from the server's issues, or from the SDK's text."""
    issues = getattr(error, "issues", None)
    texts = [issue.message for issue in issues] if issues else [str(error)]
    text = " ".join(" ".join(texts).split())[:_MESSAGE_LENGTH]
    status = getattr(error, "status", None)
    name = type(error).__name__ if status is None else status.name
    hint = _HINTS.get(type(error))
    return f"{name} {text}".strip() + (f" ({hint})" if hint else "")
