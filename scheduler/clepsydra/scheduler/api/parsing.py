"""From bytes to requests, within limits: no request may take long to read, or grow in memory by being read.

A small request is simply parsed. What is larger is looked at first: its size, the number of a batch's items, and the
size of each; and after parsing, the entries of its lists and maps, and what this version does not know. Each of these
would otherwise keep the event loop busy for seconds, or take many times its size.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError, Message

from clepsydra.core.limits import BATCH_ITEMS, ITEM_BYTES, ITEM_ENTRIES, REQUEST_BYTES
from clepsydra.core.validation.rules import FieldViolation
from clepsydra.scheduler.errors import InvalidArgument

# The largest request that cannot take long, whatever is in it.
SMALL_BYTES = 64 * 1024

# As much of a large batch is parsed at once; then others have their turn.
_AT_ONCE_BYTES = 256 * 1024

# A request with more bytes of unknown fields is refused at once; with fewer, the refusal names a field.
_UNKNOWN_BYTES = 1024

_ITEMS = "requests"
_VARINT_BYTES = 10
# No entry of a list or map is shorter.
_ENTRY_BYTES = 2


def is_batch(request_type: Any) -> bool:
    return _ITEMS in request_type.DESCRIPTOR.fields_by_name


def parse(request_type: Any, raw: bytes) -> Any:
    try:
        return request_type.FromString(raw)
    except DecodeError as error:
        raise _unreadable(request_type) from error


def check_small(raw: bytes) -> None:
    """For requests that are never larger."""
    _check_size("", len(raw), SMALL_BYTES)


async def parse_large(request_type: Any, raw: bytes) -> Any:
    """Parse a request of more than SMALL_BYTES."""
    if not is_batch(request_type):
        _check_size("", len(raw), ITEM_BYTES)
        request = parse(request_type, raw)
        _check_entries(request, "")
        _check_unknown(request, raw)
        return request
    _check_size("", len(raw), REQUEST_BYTES)
    return await _parse_batch(request_type, raw)


async def _parse_batch(request_type: Any, raw: bytes) -> Any:
    """Concatenated protobuf messages merge: a batch is parsed in parts, and others have their turn in between."""
    request, start, large = request_type(), 0, False
    for index, (begin, end) in enumerate(_fields(request_type, raw)):
        if index >= BATCH_ITEMS:
            raise _too_large(_ITEMS, f"must not have more than {BATCH_ITEMS:,} entries")
        size = end - begin
        _check_size(f"{_ITEMS}[{index}]", size, ITEM_BYTES)
        large = large or size > ITEM_ENTRIES * _ENTRY_BYTES
        if end - start > _AT_ONCE_BYTES:
            _merge(request, raw[start:end], large=large)
            start, large = end, False
            await asyncio.sleep(0)
    _merge(request, raw[start:], large=large)
    return request


def _merge(request: Any, raw: bytes, *, large: bool) -> None:
    """Add some items to a batch, unless one of them is refused."""
    part = parse(type(request), raw)
    if large:
        for index, item in enumerate(part.requests, len(request.requests)):
            _check_entries(item, f"{_ITEMS}[{index}]")
    _check_unknown(part, raw)
    request.MergeFrom(part)


def _fields(request_type: Any, raw: bytes) -> Iterator[tuple[int, int]]:
    """Where each field of a message begins and ends. Raises InvalidArgument where that cannot be seen."""
    place = 0
    while place < len(raw):
        begin = place
        tag, place = _varint(request_type, raw, place)
        match tag & 7:
            case 0:
                _, place = _varint(request_type, raw, place)
            case 1:
                place += 8
            case 2:
                size, place = _varint(request_type, raw, place)
                place += size
            case 5:
                place += 4
            case _:
                # Groups, which this API never had.
                raise _unreadable(request_type)
        if place > len(raw):
            raise _unreadable(request_type)
        yield begin, place


def _varint(request_type: Any, raw: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift, byte in enumerate(raw[place : place + _VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return number, place + shift + 1
    raise _unreadable(request_type)


def _check_size(path: str, size: int, size_max: int) -> None:
    if size > size_max:
        raise _too_large(path, f"must not be larger than {size_max:,} bytes: it has {size:,}")


def _check_entries(request: Message, path: str) -> None:
    """Refuse lists and maps that are far beyond any limit, before anything else is done with them."""
    for field, value in request.ListFields():
        where = f"{path}.{field.name}" if path else field.name
        if isinstance(value, Message):
            _check_entries(value, where)
        elif field.is_repeated and len(value) > ITEM_ENTRIES:
            raise _too_large(where, f"must not have more than {ITEM_ENTRIES:,} entries: it has {len(value):,}")


def _check_unknown(request: Any, raw: bytes) -> None:
    """Refuse a large part that this version does not know. A small part is refused by the rules for its message."""
    size = request.ByteSize()
    request.DiscardUnknownFields()
    unknown = size - request.ByteSize()
    if unknown > _UNKNOWN_BYTES:
        raise _too_large("", f"has {unknown:,} bytes that this version of Clepsydra does not know")
    if unknown:
        request.ParseFromString(raw)


def _too_large(path: str, description: str) -> InvalidArgument:
    return InvalidArgument((FieldViolation(path, description),))


def _unreadable(request_type: Any) -> InvalidArgument:
    description = f"cannot be read as a {request_type.DESCRIPTOR.name}: is the client of another version?"
    return InvalidArgument((FieldViolation("", description),))
