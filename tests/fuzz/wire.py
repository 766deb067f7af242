"""Messages as they travel: a tree of fields that can be bent in ways that no generated class allows."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Union

from google.protobuf.descriptor import Descriptor, FieldDescriptor


class WireType(IntEnum):
    VARINT = 0
    FIXED64 = 1
    LENGTH = 2
    GROUP_START = 3
    GROUP_END = 4
    FIXED32 = 5


@dataclass
class Field:
    """One field on the wire: its number, how it is encoded, and what it carries."""

    number: int
    wire_type: int
    value: Union[int, bytes, "Fields"]

    def encoded(self) -> bytes:
        tag = varint(self.number << 3 | self.wire_type)
        if isinstance(self.value, Fields):
            content = self.value.encoded()
            return tag + varint(len(content)) + content
        if isinstance(self.value, int):
            return tag + varint(self.value)
        return tag + (varint(len(self.value)) if self.wire_type == WireType.LENGTH else b"") + self.value


class Fields(list[Field]):
    """The fields of one message, in an order of their own: any may be there twice, or be unknown to the descriptor."""

    def __init__(self, descriptor: Descriptor) -> None:
        super().__init__()
        self.descriptor = descriptor

    def encoded(self) -> bytes:
        return b"".join(field.encoded() for field in self)

    def messages(self) -> list["Fields"]:
        """This message, and every one inside it."""
        inside = [message for field in self if isinstance(field.value, Fields) for message in field.value.messages()]
        return [self, *inside]


def fields_of(descriptor: Any, raw: bytes) -> Fields:
    """The tree of a sound message.

    >>> from google.protobuf.duration_pb2 import Duration
    >>> raw = Duration(seconds=300, nanos=5).SerializeToString()
    >>> fields_of(Duration.DESCRIPTOR, raw).encoded() == raw
    True
    """
    fields, place = Fields(descriptor), 0
    while place < len(raw):
        tag, place = _read_varint(raw, place)
        number, wire_type = tag >> 3, WireType(tag & 7)
        value: int | bytes | Fields
        if wire_type is WireType.VARINT:
            value, place = _read_varint(raw, place)
        else:
            size = 8
            if wire_type is WireType.LENGTH:
                size, place = _read_varint(raw, place)
            content, place = raw[place : place + size], place + size
            known = descriptor.fields_by_number[number]
            value = fields_of(known.message_type, content) if known.message_type else content
        fields.append(Field(number, wire_type, value))
    return fields


def wire_type_of(field: FieldDescriptor) -> WireType:
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return WireType.FIXED64
    if field.type in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE}:
        return WireType.LENGTH
    return WireType.VARINT


def varint(number: int) -> bytes:
    """
    >>> varint(300), len(varint(-1))
    (b'\\xac\\x02', 10)
    """
    number &= 2**64 - 1
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def double(number: float) -> bytes:
    return struct.pack("<d", number)


def _read_varint(raw: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[place]
        number |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return number, place
