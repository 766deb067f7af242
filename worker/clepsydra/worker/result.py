"""How an execution ended, as its target tells it."""

from dataclasses import dataclass

from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.v1.action_pb2 import Attempt


@dataclass(frozen=True, slots=True)
class Result:
    """What a target reports. `retry_after_us` is its wish, in place of the retry policy's delay."""

    outcome: Attempt.Outcome
    error: str = ""
    retryable: bool = True
    retry_after_us: int | None = None


SUCCESS = Result(Attempt.SUCCESS)


def failure(error: str, *, retryable: bool = True, retry_after_us: int | None = None) -> Result:
    return Result(Attempt.FAILURE, error_text(error), retryable, retry_after_us)


def described(error: BaseException) -> str:
    """An exception in one line.

    >>> described(KeyError("order"))
    "KeyError: 'order'"
    """
    name = type(error).__name__
    message = message_of(error)
    return f"{name}: {message}" if message else name


def message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as unspeakable:  # an exception of a handler runs the handler's code
        return f"its message cannot be shown ({type(unspeakable).__name__})"


def error_text(text: str) -> str:
    """Whatever a target says, as text that a status can hold and a terminal can show.

    Targets are not trusted: their words may be endless, and may hold control characters or halves of surrogate pairs,
    which protobuf refuses.

    >>> error_text("bell" + chr(7) + " and half" + chr(0xD800))
    'bell\ufffd and half\ufffd'
    """
    if len(text) > ERROR_TEXT_LENGTH:
        text = text[: ERROR_TEXT_LENGTH - 1] + "…"
    if text.isprintable():
        return text
    return "".join(map(_showable, text))


def _showable(character: str) -> str:
    if character.isprintable() or character == "\n":
        return character
    return " " if character.isspace() else "\ufffd"
