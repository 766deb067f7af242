"""The state of an encoded status, told by its first two bytes.

`state` is the first field of a status, and its number fits into one byte. So a status in state N starts with the bytes
08 N, and queries can count states without decoding a message: docs/decisions/0036-states-are-counted-by-first-bytes.md.
"""

from collections import Counter
from collections.abc import Iterable

from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import State

# The tag of field 1 with a varint.
_TAG = 0x08
# A greater number would take two bytes.
_STATE_MAX = 0x7F

# The states of actions that wait for an attempt, or run. They follow one another, so a range of bytes selects them.
LIVE_FIRST, LIVE_LAST = action_pb2.SCHEDULED, action_pb2.RETRYING


def state_bytes(state: int) -> bytes:
    """The first bytes of a status in this state; those of the next number end the range.

    >>> state_bytes(2)
    b'\\x08\\x02'
    """
    assert 0 < state <= _STATE_MAX, "the number of a state fits into one byte"
    return bytes((_TAG, state))


def state_of(status: bytes) -> int:
    """The state of an encoded status, or of its first two bytes. STATE_UNSPECIFIED if they tell none.

    >>> state_of(b"\\x08\\x03 and more"), state_of(b"damaged")
    (3, 0)
    """
    if len(status) < 2 or status[0] != _TAG or status[1] > _STATE_MAX:
        return State.STATE_UNSPECIFIED
    return status[1]


def is_live(status: bytes) -> bool:
    return LIVE_FIRST <= state_of(status) <= LIVE_LAST


def count_states(counts: Iterable[tuple[bytes, int]]) -> tuple[tuple[int, int], ...]:
    """Numbers of actions by the first two bytes of their statuses, as numbers by state.

    >>> count_states([(b"\\x08\\x04", 2), (b"??", 1), (b"!!", 1)])
    ((0, 2), (4, 2))
    """
    states: Counter[int] = Counter()
    for first_bytes, actions in counts:
        states[state_of(first_bytes)] += actions
    return tuple(sorted(states.items()))
