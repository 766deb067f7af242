"""Answers, put together from what was encoded for the store: see `core/wire.py`."""

from collections.abc import Iterable

from google.rpc.status_pb2 import Status

from clepsydra.core.wire import Heads
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse

_META = Heads(ScheduledAction.META_FIELD_NUMBER)
_SPEC = Heads(ScheduledAction.SPEC_FIELD_NUMBER)
_STATUS = Heads(ScheduledAction.STATUS_FIELD_NUMBER)
_RESULTS = Heads(BatchCreateActionsResponse.RESULTS_FIELD_NUMBER)
_ACTION = Heads(BatchCreateActionsResponse.Result.ACTION_FIELD_NUMBER)
_ERROR = Heads(BatchCreateActionsResponse.Result.ERROR_FIELD_NUMBER)


def shown(action: Action) -> ScheduledAction:
    """The message that an encoded action stands for."""
    return ScheduledAction.FromString(encoded_answer(action))


def encoded_answer(action: Action) -> bytes:
    """A ScheduledAction; of the three messages in it, one that says nothing is left out."""
    _, _, meta, spec, status, _ = action
    if meta and spec and status:
        return b"".join((_META[len(meta)], meta, _SPEC[len(spec)], spec, _STATUS[len(status)], status))
    fields = ((_META, meta), (_SPEC, spec), (_STATUS, status))
    return b"".join([heads[len(content)] + content for heads, content in fields if content])


def encoded_answers(outcomes: Iterable[Action | Status]) -> bytes:
    """A BatchCreateActionsResponse."""
    parts: list[bytes] = []
    for outcome in outcomes:
        if isinstance(outcome, Action):
            answer = encoded_answer(outcome)
            head = _ACTION[len(answer)]
        else:
            answer = outcome.SerializeToString()
            head = _ERROR[len(answer)]
        parts += (_RESULTS[len(head) + len(answer)], head, answer)
    return b"".join(parts)
