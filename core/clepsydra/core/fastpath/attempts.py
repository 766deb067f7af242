"""Begins and successes of the first attempt at an action that calls a handler once."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from google.protobuf.message import DecodeError

from clepsydra.core.action.attempt import SUCCESS, Attempt
from clepsydra.core.action.events import Decision
from clepsydra.core.action.spec import ATTEMPT_TIMEOUT_DEFAULT_US, RETENTION_AFTER_SUCCESS_DEFAULT_US
from clepsydra.core.fastpath.bytes_of_action import (
    encode_after_id,
    encode_first_success,
    encode_success_status,
    encode_time,
    handler_in,
    waiting_time,
)
from clepsydra.core.plan import Begin, BeginTerms, Ended
from clepsydra.core.tables import Advance, Due, Queue, make_advance, make_row
from clepsydra.core.times import END_OF_TIME_US
from clepsydra.v1.action_pb2 import PythonHandler

_make_begin: Callable[[tuple[Any, ...]], Begin] = partial(tuple.__new__, Begin)

# Looking up a member of an enum takes time, and these are needed for every action.
_BEGIN, _PROCESSING = Decision.BEGIN, Queue.PROCESSING

assert RETENTION_AFTER_SUCCESS_DEFAULT_US > 0, "a success that is not kept would be removed, and has no status"


class _FirstAttempt(Attempt):
    """An attempt that was begun here: its type says that its action is of the common kind."""

    __slots__ = ()


def plan_begins(rows: Sequence[Due], now_us: int, terms: BeginTerms) -> list[Begin | None]:
    worker, lease_us, grace_us, *_ = terms
    row_moves_by_us = min(ATTEMPT_TIMEOUT_DEFAULT_US, lease_us) + grace_us
    planned: list[Begin | None] = []
    for row, action in rows:
        handler = None if action is None else handler_in(action.spec)
        # A row at another time than the planned one belongs to an attempt that was begun before.
        if action is None or handler is None or row.scheduled_at_us != action.scheduled_at_us:
            planned.append(None)
            continue
        request = _decoded(handler) if waiting_time(action.status) is not None else None
        if request is None:
            planned.append(None)
            continue
        at_us = action.scheduled_at_us
        to_us = max(now_us, at_us) + row_moves_by_us
        moved = make_row((_PROCESSING, row.shard_id, to_us, row.action_id, row.guid, to_us, None))
        lease_ends_us = to_us - grace_us
        attempt = _FirstAttempt(
            moved, action, "handler", request, at_us, 1, ATTEMPT_TIMEOUT_DEFAULT_US, lease_ends_us, worker
        )
        planned.append(_make_begin((make_advance((row, to_us, None, None, None)), _BEGIN, attempt)))
    return planned


def _decoded(handler: bytes) -> PythonHandler | None:
    try:
        return PythonHandler.FromString(handler)
    except DecodeError:
        return None


def plan_ends(ended: Sequence[Ended], ended_us: int) -> list[Advance | None]:
    kept_until_us = ended_us + RETENTION_AFTER_SUCCESS_DEFAULT_US
    planned: list[Advance | None] = []
    for attempt, result, _ in ended:
        # Where clocks went wrong, the state machine finds a time that the row never had.
        is_common = result is SUCCESS and type(attempt) is _FirstAttempt
        if not is_common or not attempt.row.at_us < kept_until_us < END_OF_TIME_US:
            planned.append(None)
            continue
        action = attempt.action
        at = waiting_time(action.status)
        assert at is not None, "it was recognised when the attempt began"
        end, kept_until = _encoded_end(ended_us)
        after_id = _after_id(attempt.worker, attempt.started_us, end)
        status = encode_success_status(at, encode_first_success(attempt.id.encode(), after_id), kept_until)
        planned.append(make_advance((attempt.row, kept_until_us, action.scheduled_at_us, status, kept_until_us)))
    return planned


@lru_cache(1)
def _encoded_end(ended_us: int) -> tuple[bytes, bytes]:
    """The end of attempts and of the retention that follows, encoded once for all that end together."""
    return encode_time(ended_us), encode_time(ended_us + RETENTION_AFTER_SUCCESS_DEFAULT_US)


@lru_cache(16)
def _after_id(worker: str, started_us: int, end: bytes) -> bytes:
    """Cached, because attempts start and end together by the hundred."""
    return encode_after_id(worker.encode(), encode_time(started_us), end)
