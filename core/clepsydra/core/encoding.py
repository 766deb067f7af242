"""Encoded protobuf messages, built from encoded parts.

An encoded message is the sequence of its fields; a nested message or a text is preceded by its field number and its
length. Concatenated messages merge. So a part that is already encoded need not be parsed, copied and encoded again.
"""

_LENGTH_DELIMITED = 2
_LENGTHS_CACHED = 4096


class FieldHeads(dict[int, bytes]):
    """The bytes that precede a message or a text in a certain field, by its length.

    >>> FieldHeads(1)[300].hex()
    '0aac02'
    """

    def __init__(self, number: int) -> None:
        self._tag = _varint(number << 3 | _LENGTH_DELIMITED)

    def __missing__(self, length: int) -> bytes:
        head = self._tag + _varint(length)
        if length < _LENGTHS_CACHED:
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
