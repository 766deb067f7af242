"""Answers, put together from what was encoded for the store.

An encoded protobuf message is its fields one after the other, a message within it preceded by its number and its
length. So what a creation answers with need not be built, copied and encoded a second time.
"""

from collections.abc import Iterable
from functools import lru_cache

from google.rpc.status_pb2 import Status

from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse

_LENGTH_DELIMITED = 2

_NUMBERS = {name: field.number for name, field in ScheduledAction.DESCRIPTOR.fields_by_name.items()}
_META, _SPEC, _STATUS = _NUMBERS["meta"], _NUMBERS["spec"], _NUMBERS["status"]
_RESULTS = BatchCreateActionsResponse.DESCRIPTOR.fields_by_name["results"].number
_RESULT_NUMBERS = {
    name: field.number for name, field in BatchCreateActionsResponse.Result.DESCRIPTOR.fields_by_name.items()
}
_ACTION, _ERROR = _RESULT_NUMBERS["action"], _RESULT_NUMBERS["error"]


def shown(action: Action) -> ScheduledAction:
    """The message that an encoded action stands for."""
    return ScheduledAction.FromString(encoded_answer(action))


def encoded_answer(action: Action) -> bytes:
    """A ScheduledAction; of the three messages in it, one that says nothing is left out."""
    _, _, meta, spec, status, _ = action
    if meta and spec and status:
        return b"".join(
            (_head(_META, len(meta)), meta, _head(_SPEC, len(spec)), spec, _head(_STATUS, len(status)), status)
        )
    fields = ((_META, meta), (_SPEC, spec), (_STATUS, status))
    return b"".join([_head(number, len(content)) + content for number, content in fields if content])


def encoded_answers(outcomes: Iterable[Action | Status]) -> bytes:
    """A BatchCreateActionsResponse."""
    parts: list[bytes] = []
    for outcome in outcomes:
        if isinstance(outcome, Action):
            number, answer = _ACTION, encoded_answer(outcome)
        else:
            number, answer = _ERROR, outcome.SerializeToString()
        head = _head(number, len(answer))
        parts += (_head(_RESULTS, len(head) + len(answer)), head, answer)
    return b"".join(parts)


@lru_cache(4096)
def _head(number: int, length: int) -> bytes:
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
