"""Values at and beyond the edge of every type, and of what the API allows."""

import random

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from clepsydra.core import limits
from clepsydra.core.targets import http as http_target
from tests.fuzz.wire import Field, Fields, double, wire_type_of

_POWERS = [2**n + d for n in (0, 7, 8, 15, 16, 21, 31, 32, 40, 62, 63) for d in (-1, 0, 1)]
# The ends of what a Timestamp and a Duration may hold, too.
_SECONDS = [-62135596800, -62135596801, 253402300799, 253402300800, 315576000000, 315576000001, 4102444800, 4102444799]
_NANOS = [999_999_999, 1_000_000_000, -999_999_999, 1, 999]
_INTEGERS = sorted({sign * number for number in [*_POWERS, *_SECONDS, *_NANOS] for sign in (1, -1)} | {0, 2**64 - 1})
_DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, 0.9999999999999999, 1.0000000000000002, 100.0, 100.00000000000001, 1e308, -1e308, 5e-324,
    float("inf"), float("-inf"), float("nan"),
]  # fmt: skip
_LENGTHS = [
    length + d
    for length in (
        limits.ETAG_LENGTH,
        limits.LABEL_KEY_LENGTH,
        limits.REQUEST_ID_LENGTH,
        limits.ID_LENGTH,
        limits.PAGE_TOKEN_LENGTH,
        http_target.URL_LENGTH,
    )
    for d in (0, 1)
]
_TEXTS = [
    "", " ", "a", "A", "0", "-", "a b", "a\n", "\n", "\r\nX: y", "\0", "a\0b", "\x7f", "\t", "é", "e\u0301",
    "\u202eabc", "\ufeff", "\ufffe", "\U0001d11e", "\U0010ffff", "'; DROP TABLE scheduled_actions; --", "%s%n", "{}",
    "../..", "\\",
    "http://", "http://[", "http://[::1", "http://a:99999/", "http://\u00fc/", "ftp://a/", "http://a/\x01", "https://a",
    "http://:@/", "HTTP://EXAMPLE.ORG", "spec", "spec.", ".", "*", "meta.id", "status", "spec.http.headers.name",
    "text/plain", "text", "GET", "get", "CONNECT", "Host", "Clepsydra-Guid", "X-\u00e4",
]  # fmt: skip
# What is not UTF-8: a stray byte, an overlong zero, a surrogate, beyond the last character, a sequence cut short.
_BAD_UTF8 = [b"\xff", b"\x80", b"a\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"good\xfe"]
_SIZES = [limits.PAYLOAD_BYTES, limits.PAYLOAD_BYTES + 1]


def extreme(chance: random.Random, field: FieldDescriptor) -> Field:
    """This field with a value that it should rather not have."""
    return Field(field.number, wire_type_of(field), _value(chance, field))


def _value(chance: random.Random, field: FieldDescriptor) -> int | bytes | Fields:
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _message(chance, field.message_type)
    if field.type == FieldDescriptor.TYPE_DOUBLE:
        return double(chance.choice(_DOUBLES))
    if field.type == FieldDescriptor.TYPE_STRING:
        return _text(chance)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(chance)
    return chance.choice(_INTEGERS)


def _message(chance: random.Random, descriptor: Descriptor) -> Fields:
    """A message of which any field may be set, each to an extreme; also several members of a oneof."""
    fields = Fields(descriptor)
    wanted = chance.choice([0.0, 0.3, 0.7, 1.0])
    for field in descriptor.fields:
        if chance.random() < wanted:
            times = chance.choice([1, 1, 1, 2, 5]) if field.is_repeated else 1
            fields += [extreme(chance, field) for _ in range(times)]
    return fields


def _text(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.6:
        return chance.choice(_TEXTS).encode()
    if kind < 0.8:
        return chance.choice(_BAD_UTF8)
    return chance.choice(["a", "é", " ", "\U0001d11e"]).encode() * chance.choice(_LENGTHS)


def _bytes(chance: random.Random) -> bytes:
    if chance.random() < 0.05:
        return bytes(chance.choice(_SIZES))
    return chance.choice([b"", b"\0", b"\xff" * 10, b"{}", chance.randbytes(300)])
