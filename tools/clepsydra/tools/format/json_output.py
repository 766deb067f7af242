"""JSON on the standard output."""

import json
from collections.abc import Callable
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message


def json_text(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """JSON that a terminal shows as it is: what is not printable is escaped, and only that.

    JSON itself escapes no more than the first 32 control characters. Others move the cursor as well, or turn the
    direction of the text.

    >>> print(json_text({"name": "Zoë" + chr(0x9B) + "2J" + chr(0x202E)}))
    {"name": "Zoë\\u009b2J\\u202e"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=default)
    lines = text.split("\n")
    if all(map(str.isprintable, lines)):
        return text
    return "\n".join("".join(each if each.isprintable() else _escaped(each) for each in line) for line in lines)


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    click.echo(json_text(value, indent=None if in_one_line else 2))


def message_line(message: Message) -> bytes:
    """A line of a file of messages."""
    fields = MessageToDict(message, preserving_proto_field_name=True)
    return json_text(fields).encode() + b"\n"


def print_message(message: Message, *, in_one_line: bool = False) -> None:
    """Print protobuf's JSON with the field names of the .proto files, as error messages and update masks use them."""
    print_json(MessageToDict(message, preserving_proto_field_name=True), in_one_line=in_one_line)
