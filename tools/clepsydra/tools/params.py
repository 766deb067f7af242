"""What the command's flags can be: durations, times, labels, headers, text or files."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clepsydra.tools.durations import parse_duration_us
from clepsydra.tools.times import parse_time_us


class Parsed(click.ParamType):  # type: ignore[type-arg]  # not generic in every version that will do
    """Whatever a function makes of the text. What it refuses, it says in a ValueError."""

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


def content_of(text: str) -> bytes:
    """Text as it is, or @ and the name of a file, or @- for what comes in; @@ stands for a text that starts with @.

    >>> content_of("water"), content_of("@@home")
    (b'water', b'@home')
    """
    if text.startswith("@@") or not text.startswith("@"):
        # Arguments that are not UTF-8 come in as escaped bytes, and go out as those bytes.
        return text.removeprefix("@").encode("utf-8", "surrogateescape")
    if text == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        raise ValueError(
            f"the file {text[1:]!r} cannot be read ({error.strerror}); @@ stands for a leading @"
        ) from error


def pair_around(separator: str, example: str) -> Callable[[str], tuple[str, str]]:
    """Two texts with a separator between them.

    >>> pair_around("=", "team=billing")("team = ops")
    ('team', 'ops')
    """

    def parse(text: str) -> tuple[str, str]:
        left, found, right = text.partition(separator)
        if not found or not left.strip():
            raise ValueError(f"{text!r} has no name and {separator!r} in it: write it like {example!r}")
        return left.strip(), right.strip()

    return parse


DURATION = Parsed("duration", parse_duration_us)
TIME = Parsed("time", parse_time_us)
CONTENT = Parsed("text|@file", content_of)
LABEL = Parsed("key=value", pair_around("=", "team=billing"))
HEADER = Parsed("name: value", pair_around(":", "Content-Type: application/json"))
