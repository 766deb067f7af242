"""What the command's flags can be: durations, times, labels, headers, text or files."""

import sys
from pathlib import Path
from typing import Any

import click

from clepsydra.tools.durations import WrongDuration, parse_duration_us
from clepsydra.tools.times import WrongTime, parse_time_us


class DurationType(click.ParamType):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_duration_us(value)
        except WrongDuration as error:
            self.fail(str(error), param, ctx)


class TimeType(click.ParamType):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_time_us(value)
        except WrongTime as error:
            self.fail(str(error), param, ctx)


class ContentType(click.ParamType):
    """Text as it is, or @ and the name of a file, or @- for what comes in; @@ stands for a text that starts with @."""

    name = "text|@file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        if isinstance(value, bytes):
            return value
        if value.startswith("@@") or not value.startswith("@"):
            return self._encoded(value.removeprefix("@") if value.startswith("@@") else value)
        if value == "@-":
            return sys.stdin.buffer.read()
        try:
            return Path(value[1:]).read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self.fail(f"the file {value[1:]!r} cannot be read ({reason}); @@ stands for a leading @", param, ctx)

    @staticmethod
    def _encoded(text: str) -> bytes:
        # Arguments that are not UTF-8 come in as escaped bytes, and go out as those bytes.
        return text.encode("utf-8", "surrogateescape")


class PairType(click.ParamType):
    """Two texts around a separator."""

    def __init__(self, name: str, separator: str, example: str) -> None:
        self.name = name
        self._separator = separator
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        left, separator, right = value.partition(self._separator)
        if not separator or not left.strip():
            self.fail(f"{value!r} has no {self._separator!r} after a name: write it like {self._example!r}", param, ctx)
        return left.strip(), right.strip()


DURATION = DurationType()
TIME = TimeType()
CONTENT = ContentType()
LABEL = PairType("key=value", "=", "team=billing")
HEADER = PairType("name: value", ":", "Content-Type: application/json")
