"""Types of fields that flags set: how a text is read, how the value is written to a message, how `get` shows it."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import click

from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.times import duration, duration_us, timestamp, us_of
from clepsydra.tools.format.durations import exact_duration, parse_duration_us
from clepsydra.tools.format.terminal import is_closed
from clepsydra.tools.format.text import counted, printable
from clepsydra.tools.format.times import parse_time_us, rfc3339


def _assign(message: Any, name: str, value: Any) -> None:
    setattr(message, name, value)


class FieldType(NamedTuple):
    # How click reads the text of the flag. None: the flag takes no text.
    parameter: click.ParamType | None  # type: ignore[type-arg]  # not generic in every version of click that works
    # A value of the field, for people.
    show: Callable[[Any], str]
    # Writes what click has read to the field of a message: write(message, name, value).
    write: Callable[[Any, str, Any], None] = _assign
    # The flag may be given more than once; `write` receives all values.
    is_repeated: bool = False


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A parameter that a function parses. The function refuses a text by a ValueError."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def parse_content(text: str) -> bytes:
    """The text itself, or @ and the name of a file, or @- for standard input; @@ is a text that starts with @.

    >>> parse_content("water"), parse_content("@@home")
    (b'water', b'@home')
    """
    if text.startswith("@@") or not text.startswith("@"):
        # Python passes argument bytes that are not UTF-8 as surrogates; this restores them.
        return text.removeprefix("@").encode("utf-8", "surrogateescape")
    if text == "@-":
        if is_closed(sys.stdin):
            raise ValueError("standard input is closed")
        return _read_content(sys.stdin.buffer)
    try:
        with open(text[1:], "rb") as file:
            return _read_content(file)
    except OSError as error:
        raise ValueError(
            f"the file {text[1:]!r} cannot be read ({error.strerror}); write @@ for a text that starts with @"
        ) from error


def _read_content(file: BinaryIO) -> bytes:
    """All of a file, as long as the API accepts it: a device may have no end."""
    content = file.read(PAYLOAD_BYTES + 1)
    if len(content) > PAYLOAD_BYTES:
        raise ValueError(f"it is longer than {PAYLOAD_BYTES:,} bytes, the most that the API accepts")
    return content


def parse_name(text: str) -> str:
    """An id, a name, a URL: anything but nothing."""
    if not text:
        raise ValueError("it is empty; is a variable of the shell not set?")
    return text


def pair_parser(separator: str, example: str) -> Callable[[str], tuple[str, str]]:
    """A function that parses a name and a value with a separator between them.

    >>> pair_parser("=", "team=billing")("team = ops")
    ('team', 'ops')
    """

    def parse(text: str) -> tuple[str, str]:
        name, found, value = text.partition(separator)
        if not found or not name.strip():
            raise ValueError(
                f"{text!r} is not a name and a value with {separator!r} between: write it like {example!r}"
            )
        return name.strip(), value.strip()

    return parse


def _distinct(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise click.UsageError(f"--label {twice} is given twice: a label has one value")
    return values


def constant(value: Any) -> FieldType:
    """A flag without text: it always writes this value."""
    return FieldType(None, show=str, write=lambda message, name, _: setattr(message, name, value))


DURATION = FieldType(
    Parsed("duration", parse_duration_us),
    show=lambda value: exact_duration(duration_us(value)),
    write=lambda message, name, us: getattr(message, name).CopyFrom(duration(us)),
)
TIME = FieldType(
    Parsed("time", parse_time_us),
    show=lambda value: rfc3339(us_of(value)),
    write=lambda message, name, us: getattr(message, name).CopyFrom(timestamp(us)),
)
TEXT = FieldType(click.STRING, show=printable)
# A text that is never empty on purpose. An empty one is a variable of the shell that is not set.
NAME_PARAMETER = Parsed("text", parse_name)
NAME = FieldType(NAME_PARAMETER, show=printable)
# A whole number; 0 is unlimited.
LIMIT = FieldType(click.IntRange(min=0), show=lambda number: f"{number:,}" if number else "no limit")
DECIMAL = FieldType(click.FLOAT, show=lambda number: f"{number:g}")
# Only the size is shown: a body or a payload may be long, and may be secret. `get --json` prints it.
CONTENT = FieldType(Parsed("text|@file", parse_content), show=lambda content: counted(len(content), "byte"))
LABELS = FieldType(
    Parsed("key=value", pair_parser("=", "team=billing")),
    show=lambda labels: ", ".join(f"{key}={printable(labels[key])}" for key in sorted(labels)),
    write=lambda message, name, pairs: getattr(message, name).update(_distinct(pairs)),
    is_repeated=True,
)
