"""The writes of actions and rows: a batch goes in the order of action ids, and what comes back becomes outcomes.

Statements return what did not go well. What they return as lost has changed since their snapshot, and is sent again.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.errors import OutcomeUnknown
from clepsydra.store.port import (
    Action,
    Mark,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
)
from clepsydra.store.postgres import columns
from clepsydra.store.postgres.calls import Calls, Patience

LOST = "lost"
_DONE = PutResult(PutOutcome.DONE)
_TOO_LATE = PutResult(PutOutcome.TOO_LATE)


async def put(calls: Calls, puts: Sequence[Put]) -> list[PutResult]:
    results = [_DONE] * len(puts)
    pending = sorted(range(len(puts)), key=lambda n: puts[n].action.action_id)
    patience, is_of_replay = Patience(), False
    while pending:
        batch = columns.of_puts([puts[n] for n in pending])
        answer = await calls.change("put", *batch, CALL_RETRY_US, patience=patience)
        is_of_replay |= answer.is_of_replay
        lost = []
        for place, judgement, *current in answer.rows:
            n = pending[place]
            if judgement == LOST:
                lost.append(n)
            else:
                results[n] = put_result(puts[n], judgement, current)
        pending = again(lost, patience)
    if is_of_replay and any(result is not _DONE for result in results):
        # The first try may have been carried out, and what stands in the way now may have come after it.
        raise OutcomeUnknown("the connection to the store was lost while it was writing; some of it may be done")
    return results


def put_result(put: Put, judgement: str, current: Sequence[Any]) -> PutResult:
    if judgement == "late":
        return _TOO_LATE
    guid, meta, spec, status, scheduled_at_us = current
    if guid is None:
        return PutResult(PutOutcome.CONFLICT)
    action = Action(put.action.action_id, guid, meta, spec, status, scheduled_at_us)
    return PutResult(PutOutcome.CONFLICT, action)


async def migrate(calls: Calls, rows: Sequence[Row], mark: Mark) -> int:
    incoming = [row for row in rows if row.queue is Queue.INCOMING]
    answer = await calls.change("migrate", *columns.of_rows(in_order(incoming)), *mark)
    moved: int = answer.rows[0][0]
    return moved


async def drop(calls: Calls, rows: Sequence[Row]) -> None:
    await calls.change("drop", *columns.of_rows(in_order(rows)))


def again(lost: list[int], patience: Patience) -> list[int]:
    """What is to be sent again. Whoever was faster has ended by now, so this ends too, and soon."""
    if lost:
        patience.may_be_done = True
        if patience.left_s <= 0:
            raise OutcomeUnknown("the rows changed faster than the store could write them; some of it may be done")
    return lost


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.action_id)
