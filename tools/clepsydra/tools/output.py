"""Where results go: tables for people, JSON for programs, and a counter on stderr while people wait."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Wide enough that nothing is cut or wrapped where a program reads a table.
_WIDTH_OF_A_PIPE = 1000


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # rich would end the process with a code of its own.
        raise BrokenPipeError


def console() -> Console:
    return _Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE)


def table(columns: Sequence[str], rows: Iterable[Sequence[Text | str]], right: Sequence[str] = ()) -> Table:
    """Columns and rows without lines between them, so that a table can also be cut with awk."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=not sys.stdout.isatty())
    for row in rows:
        # Text, so that square brackets in somebody's id are not taken for markup.
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    made = Table(box=None, pad_edge=False, show_header=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        made.add_row(Text(name), Text(value))
    return made


def message_as_dict(message: Message) -> dict[str, Any]:
    """Protobuf's JSON, with the names of the .proto files, which error messages and update masks use too."""
    as_dict: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return as_dict


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=None if in_one_line else 2))


class Counter:
    """Counts up on stderr, if somebody is looking at it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = sys.stderr.isatty()

    def show(self, number: int) -> None:
        if self._shown:
            click.echo(f"\r{number:,} {self._what}", nl=False, err=True)

    def clear(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
