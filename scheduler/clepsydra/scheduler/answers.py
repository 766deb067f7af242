"""Answers, put together from what was encoded for the store: see `core/wire.py`."""

from collections.abc import Iterable

from google.rpc.status_pb2 import Status

from clepsydra.core.wire import head
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse

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
            (head(_META, len(meta)), meta, head(_SPEC, len(spec)), spec, head(_STATUS, len(status)), status)
        )
    fields = ((_META, meta), (_SPEC, spec), (_STATUS, status))
    return b"".join([head(number, len(content)) + content for number, content in fields if content])


def encoded_answers(outcomes: Iterable[Action | Status]) -> bytes:
    """A BatchCreateActionsResponse."""
    parts: list[bytes] = []
    for outcome in outcomes:
        if isinstance(outcome, Action):
            number, answer = _ACTION, encoded_answer(outcome)
        else:
            number, answer = _ERROR, outcome.SerializeToString()
        inner = head(number, len(answer))
        parts += (head(_RESULTS, len(inner) + len(answer)), inner, answer)
    return b"".join(parts)
