"""Failures of targets, as texts that a status can hold and a terminal can show."""

from clepsydra.core.action.attempt import Result
from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.v1.action_pb2 import Attempt


def failure(
    error: str, *, retryable: bool = True, retry_after_us: int | None = None, cause: BaseException | None = None
) -> Result:
    return Result(Attempt.FAILURE, error_text(error), retryable, retry_after_us, cause)


def describe(error: BaseException) -> str:
    """An exception in one line.

    >>> describe(KeyError("order"))
    "KeyError: 'order'"
    """
    name = type(error).__name__
    message = message_of(error)
    return f"{name}: {message}" if message else name


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as failed:  # the message of a handler's exception is made by the handler's code
        return f"its message cannot be shown ({type(failed).__name__})"


def error_text(text: str) -> str:
    """A text from a target, which is not trusted: it may be endless, and may hold control characters or halves of
    surrogate pairs, which protobuf refuses.

    >>> error_text("bell" + chr(7) + " and half" + chr(0xD800))
    'bell\ufffd and half\ufffd'
    """
    if len(text) > ERROR_TEXT_LENGTH:
        text = text[: ERROR_TEXT_LENGTH - 1] + "…"
    if text.isprintable():
        return text
    return "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return " " if character.isspace() else "\ufffd"
