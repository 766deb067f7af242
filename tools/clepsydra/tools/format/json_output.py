"""JSON on the standard output."""

import json
from typing import Any

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message


def print_json(value: Any, *, in_one_line: bool = False) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=None if in_one_line else 2))


def message_line(message: Message) -> bytes:
    """A line of a file of messages."""
    fields = MessageToDict(message, preserving_proto_field_name=True)
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def print_message(message: Message, *, in_one_line: bool = False) -> None:
    """Print protobuf's JSON with the field names of the .proto files, as error messages and update masks use them."""
    print_json(MessageToDict(message, preserving_proto_field_name=True), in_one_line=in_one_line)
