"""A line in the worker's log, for trying things out."""

from clepsydra.core.validation.rules import length, message
from clepsydra.v1.action_pb2 import LogLine

LOG_MESSAGE_LENGTH = 4096
_SHOWN_LENGTH = 60

RULE = message(LogLine, {"message": length(LOG_MESSAGE_LENGTH, "characters")})


def fill_in(_line: LogLine) -> None:
    """Nothing has a default."""


def describe(line: LogLine) -> str:
    text = line.message if len(line.message) <= _SHOWN_LENGTH else line.message[: _SHOWN_LENGTH - 1] + "…"
    return f'log "{text}"'
