"""Encoded protobuf messages, put together from encoded parts.

An encoded message is its fields one after the other, a message or a text within it preceded by its number and its
length; and two encoded messages, one after the other, are both merged. So what is known in its encoded form need not
be built, copied and encoded a second time.
"""

_LENGTH_DELIMITED = 2
_LENGTHS_KEPT = 4096


class Heads(dict[int, bytes]):
    """What precedes a message or a text as a certain field, by its length; those of usual lengths are kept.

    >>> Heads(1)[300].hex()
    '0aac02'
    """

    def __init__(self, number: int) -> None:
        self._tag = _varint(number << 3 | _LENGTH_DELIMITED)

    def __missing__(self, length: int) -> bytes:
        head = self._tag + _varint(length)
        if length < _LENGTHS_KEPT:
            self[length] = head
        return head


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
