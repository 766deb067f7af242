"""Encoded protobuf messages, put together from encoded parts.

An encoded message is its fields one after the other, a message or a text within it preceded by its number and its
length; and two encoded messages, one after the other, are both merged. So what is known in its encoded form need not
be built, copied and encoded a second time.
"""

from functools import lru_cache

_LENGTH_DELIMITED = 2


@lru_cache(4096)
def head(number: int, length: int) -> bytes:
    """What precedes a message or a text of that length, as the field of that number."""
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(length)


def _varint(value: int) -> bytes:
    """Seven bits to a byte, the lowest first; the eighth bit says that more follow.

    >>> _varint(300).hex()
    'ac02'
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
