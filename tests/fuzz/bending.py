"""Bends sound requests: extremes, unknown fields, doubled members of a oneof, other wire types, bytes cut off."""

import random
from collections.abc import Callable

from google.protobuf.message import Message

from clepsydra.core.limits import BATCH_ITEMS, REQUEST_BYTES
from tests.fuzz.extremes import extreme
from tests.fuzz.wire import Field, Fields, WireType, fields_of, varint

_UNKNOWN = [4, 9, 13, 99, 1000, 19000, 2**29 - 1]


def bent(chance: random.Random, request: Message) -> bytes:
    """The request, bent a little; now and then beyond recognition."""
    fields = fields_of(request.DESCRIPTOR, request.SerializeToString())
    for _ in range(chance.choice([0, 1, 1, 1, 2, 4])):
        chance.choices(list(_BENDS), list(_BENDS.values()))[0](chance, chance.choice(fields.messages()))
    raw = fields.encoded()
    if chance.random() < 0.1:
        raw = chance.choices(list(_DAMAGES), list(_DAMAGES.values()))[0](chance, raw)
    return raw


def _set_to_an_extreme(chance: random.Random, message: Fields) -> None:
    if not message.descriptor.fields:
        return
    known = chance.choice(message.descriptor.fields)
    if not (known.is_repeated or chance.random() < 0.2):
        # In its place, mostly; else beside what is there, and the last one counts.
        message[:] = [field for field in message if field.number != known.number]
    message.append(extreme(chance, known))


def _remove(chance: random.Random, message: Fields) -> None:
    if message:
        message.pop(chance.randrange(len(message)))


def _repeat(chance: random.Random, message: Fields) -> None:
    if message:
        message += [chance.choice(message)] * chance.choice([1, 2, 65])


def _shuffle(chance: random.Random, message: Fields) -> None:
    chance.shuffle(message)


def _double_a_oneof(chance: random.Random, message: Fields) -> None:
    for oneof in message.descriptor.oneofs:
        message += [extreme(chance, member) for member in oneof.fields]


def _add_unknown(chance: random.Random, message: Fields) -> None:
    number = chance.choice(_UNKNOWN)
    message.append(
        chance.choice(
            [
                Field(number, WireType.VARINT, chance.getrandbits(64)),
                Field(number, WireType.FIXED64, chance.randbytes(8)),
                Field(number, WireType.LENGTH, chance.randbytes(chance.choice([0, 1, 300]))),
                Field(number, WireType.FIXED32, chance.randbytes(4)),
            ]
        )
    )


def _change_wire_type(chance: random.Random, message: Fields) -> None:
    if message.descriptor.fields:
        number = chance.choice(message.descriptor.fields).number
        message.append(Field(number, WireType.FIXED32, chance.randbytes(4)))


def _nest_groups(chance: random.Random, message: Fields) -> None:
    depth = chance.choice([1, 50, 200])
    start, end = varint(99 << 3 | WireType.GROUP_START), varint(99 << 3 | WireType.GROUP_END)
    # As the content of a field of fixed size, so that nothing is written before the groups.
    message.append(Field(99, WireType.GROUP_START, start * depth + end * (depth + chance.choice([1, 1, 1, 0]))))


def _cut(chance: random.Random, raw: bytes) -> bytes:
    return raw[: chance.randrange(len(raw) + 1)]


def _flip(chance: random.Random, raw: bytes) -> bytes:
    written = bytearray(raw or b"\0")
    for _ in range(chance.choice([1, 3, 20])):
        written[chance.randrange(len(written))] = chance.getrandbits(8)
    return bytes(written)


def _insert(chance: random.Random, raw: bytes) -> bytes:
    place = chance.randrange(len(raw) + 1)
    return raw[:place] + chance.randbytes(chance.choice([1, 4, 30])) + raw[place:]


def _randomness(chance: random.Random, raw: bytes) -> bytes:
    del raw
    return chance.randbytes(chance.choice([0, 1, 10, 1000]))


def _overlong(chance: random.Random, raw: bytes) -> bytes:
    """A number of more bytes than a number has, or a length that goes beyond the end."""
    return raw + chance.choice([b"\x08" + b"\xff" * 11, b"\x0a" + varint(2**31), b"\x0a" + varint(2**63), b"\x00\x00"])


def _repeat_whole(chance: random.Random, raw: bytes) -> bytes:
    """Messages that are sent twice are merged; a batch becomes longer than a batch may be."""
    return raw * min(chance.choice([2, 3, BATCH_ITEMS + 1]), 1 + 2**20 // (len(raw) + 1))


def _too_large(chance: random.Random, raw: bytes) -> bytes:
    return raw + Field(99, WireType.LENGTH, bytes(REQUEST_BYTES + chance.choice([-2 * len(raw) - 20, 1]))).encoded()


_BENDS: dict[Callable[[random.Random, Fields], None], int] = {
    _set_to_an_extreme: 20,
    _remove: 3,
    _repeat: 2,
    _shuffle: 1,
    _double_a_oneof: 1,
    _add_unknown: 2,
    _change_wire_type: 1,
    _nest_groups: 1,
}
_DAMAGES: dict[Callable[[random.Random, bytes], bytes], float] = {
    _cut: 4,
    _flip: 4,
    _insert: 4,
    _randomness: 3,
    _overlong: 3,
    _repeat_whole: 2,
    _too_large: 0.1,
}
