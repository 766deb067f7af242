"""Responses, encoded from the parts that were encoded for the store: see `clepsydra.core.encoding`."""

from collections.abc import Callable, Iterable

from clepsydra.core.action.memory import show_attempts
from clepsydra.core.encoding import FieldHeads
from clepsydra.scheduler.errors import SchedulerError
from clepsydra.scheduler.writes.call import Outcome
from clepsydra.store.port import Action
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsResponse, ItemError

_META = FieldHeads(ScheduledAction.META_FIELD_NUMBER)
_SPEC = FieldHeads(ScheduledAction.SPEC_FIELD_NUMBER)
_STATUS = FieldHeads(ScheduledAction.STATUS_FIELD_NUMBER)
_RESULTS = FieldHeads(BatchCreateActionsResponse.RESULTS_FIELD_NUMBER)
_ACTION = FieldHeads(BatchCreateActionsResponse.Result.ACTION_FIELD_NUMBER)
_ERROR = FieldHeads(BatchCreateActionsResponse.Result.ERROR_FIELD_NUMBER)


def to_message(action: Action) -> ScheduledAction:
    return as_shown(ScheduledAction.FromString(encode_action(action)))


def as_shown(action: ScheduledAction) -> ScheduledAction:
    """A decoded action in the form that readers get; it is changed in place."""
    show_attempts(action.status)
    return action


def encode_action(action: Action) -> bytes:
    """A ScheduledAction; a part that is empty is left out."""
    _, _, meta, spec, status, _ = action
    if meta and spec and status:
        return b"".join((_META[len(meta)], meta, _SPEC[len(spec)], spec, _STATUS[len(status)], status))
    parts = ((_META, meta), (_SPEC, spec), (_STATUS, status))
    return b"".join([heads[len(part)] + part for heads, part in parts if part])


def encode_results(outcomes: Iterable[Outcome], item_error_of: Callable[[SchedulerError, int], ItemError]) -> bytes:
    """A BatchCreateActionsResponse. `item_error_of` gets an error and its place in the batch."""
    parts: list[bytes] = []
    for outcome in outcomes:
        if isinstance(outcome, Action):
            encoded = encode_action(outcome)
            head = _ACTION[len(encoded)]
        else:
            encoded = item_error_of(outcome, len(parts) // 3).SerializeToString()
            head = _ERROR[len(encoded)]
        parts += (_RESULTS[len(head) + len(encoded)], head, encoded)
    return b"".join(parts)
