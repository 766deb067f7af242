"""Protobuf's JSON, read fast where it looks as our own commands write it, and by protobuf's own parser otherwise.

Protobuf's parser in Python takes half a millisecond for an action: ten minutes for a million. Converters that are made
once for each kind of message take a seventh of that. They know only what `message_line` writes. Whatever else there is
(other spellings, values of another type, fields with two values), protobuf's parser decides on: also on the error.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Parsed = TypeVar("Parsed", bound=Message)
_Convert = Callable[[Any], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
# "2026-11-18T09:50:21Z", without a fraction and with three or six digits of one.
_TIME_LENGTHS = frozenset({20, 24, 27})


class _NotOurs(Exception):
    """The text is not as our commands write it."""


def parse_message(text: bytes, kind: type[Parsed]) -> Parsed:
    """A message in JSON. Raises json_format.ParseError, and what it raises for bytes that are no text."""
    try:
        fields = json.loads(text, object_pairs_hook=_distinct, parse_constant=_not_ours)
        return kind(**_fields(kind.DESCRIPTOR)(fields))
    except (_NotOurs, ValueError, TypeError, AttributeError, RecursionError):
        return json_format.Parse(text, kind())


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotOurs
    return found


@cache
def _fields(descriptor: Any) -> _Convert:
    """From the JSON object of a message to the arguments that make it."""
    converters = {field.name: _converter(field) for field in descriptor.fields}
    choices = [{field.name for field in oneof.fields} for oneof in descriptor.oneofs if len(oneof.fields) > 1]

    def convert(value: Any) -> dict[str, Any]:
        if type(value) is not dict or any(len(choice & value.keys()) > 1 for choice in choices):
            raise _NotOurs
        try:
            return {name: converters[name](part) for name, part in value.items()}
        except KeyError as error:
            raise _NotOurs from error

    return convert


def _converter(field: Any) -> _Convert:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return _text_map(field)
    one = _converter_of_one(field)
    if not field.is_repeated:
        return one

    def each(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _NotOurs
        return [one(part) for part in value]

    return each


def _converter_of_one(field: Any) -> _Convert:
    if field.message_type is None:
        return _SCALARS.get(field.cpp_type, _not_ours) if field.type != FieldDescriptor.TYPE_BYTES else _bytes
    return _MESSAGES.get(field.message_type.full_name) or _later(field.message_type)


def _later(descriptor: Any) -> _Convert:
    """The converter of a message inside another; messages may contain themselves."""
    return lambda value: _fields(descriptor)(value)


def _text_map(field: Any) -> _Convert:
    value_field = field.message_type.fields_by_name["value"]
    if value_field.cpp_type != FieldDescriptor.CPPTYPE_STRING or value_field.type == FieldDescriptor.TYPE_BYTES:
        return _not_ours

    def convert(value: Any) -> dict[str, str]:
        if type(value) is not dict:
            raise _NotOurs
        return {key: _text(part) for key, part in value.items()}

    return convert


def _not_ours(_value: Any) -> Any:
    raise _NotOurs


def _of_type(wanted: type) -> _Convert:
    def convert(value: Any) -> Any:
        if type(value) is not wanted:
            raise _NotOurs
        return value

    return convert


_text, _whole_number = _of_type(str), _of_type(int)


def _long_number(value: Any) -> int:
    """Numbers of 64 bits are texts in protobuf's JSON."""
    if type(value) is not str or not value.isascii() or not value.isdigit():
        raise _NotOurs
    return int(value)


def _real_number(value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _NotOurs
    return float(value)


def _bytes(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)


def _timestamp(value: Any) -> Timestamp:
    if type(value) is not str or len(value) not in _TIME_LENGTHS or value[4::3][:2] + value[10] + value[-1] != "--TZ":
        raise _NotOurs
    passed = datetime.fromisoformat(value) - _EPOCH
    return Timestamp(seconds=passed // _SECOND, nanos=passed.microseconds * 1000)


def _duration(value: Any) -> Duration:
    if type(value) is not str or value[-1:] != "s" or not value.isascii():
        raise _NotOurs
    whole, _, fraction = value[:-1].partition(".")
    if not whole.isdigit() or (fraction and not fraction.isdigit()) or len(whole) > 9 or len(fraction) > 9:
        raise _NotOurs
    return Duration(seconds=int(whole), nanos=int(fraction.ljust(9, "0")) if fraction else 0)


_SCALARS: dict[int, _Convert] = {
    FieldDescriptor.CPPTYPE_STRING: _text,
    FieldDescriptor.CPPTYPE_BOOL: _of_type(bool),
    FieldDescriptor.CPPTYPE_INT32: _whole_number,
    FieldDescriptor.CPPTYPE_UINT32: _whole_number,
    FieldDescriptor.CPPTYPE_INT64: _long_number,
    FieldDescriptor.CPPTYPE_UINT64: _long_number,
    FieldDescriptor.CPPTYPE_DOUBLE: _real_number,
    # The constructor of a message takes the name.
    FieldDescriptor.CPPTYPE_ENUM: _text,
}
_MESSAGES: dict[str, _Convert] = {
    Timestamp.DESCRIPTOR.full_name: _timestamp,
    Duration.DESCRIPTOR.full_name: _duration,
}
