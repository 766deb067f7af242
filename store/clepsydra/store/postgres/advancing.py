"""Advances: most batches are of one kind and nothing stands in their way, so they are carried out as they are.

That takes the server far less time than to judge every one of them, and to find out which was not carried out. If
anything stands in the way, a begin leaves out what is hindered, and a finish does nothing at all. Then the batch is
judged, under the same mark, by which it shows what is done already.
"""

from collections.abc import Sequence

import asyncpg

from clepsydra.store.errors import StoreError
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue
from clepsydra.store.postgres import columns
from clepsydra.store.postgres.calls import Answer, Calls, Patience
from clepsydra.store.postgres.changes import LOST, again

_OUTCOMES = {"stale": AdvanceOutcome.STALE, "gone": AdvanceOutcome.GONE}

_BEGIN = {Queue.INCOMING: "begin_from_incoming", Queue.PROCESSING: "begin_in_processing"}

# What a finish that takes itself back leaves in the server's log.
_HINDERED = "clepsydra: an action was changed while it was executed, so this batch is looked at one by one"


async def advance(calls: Calls, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
    places = sorted(range(len(advances)), key=lambda n: advances[n].row.action_id)
    patience = Patience()
    batch = [advances[n] for n in places]
    if await _advance_at_once(calls, batch, mark, patience):
        return [AdvanceOutcome.DONE] * len(advances)
    # The first try of a statement that was sent twice may be what stood in the way of the second.
    return await _advance_as_judged(calls, advances, places, mark, patience, is_of_replay=patience.may_be_done)


async def _advance_at_once(calls: Calls, advances: Sequence[Advance], mark: Mark, patience: Patience) -> bool:
    """Whether all of it is done."""
    count = len(advances)
    rows, to, seen, status, planned = zip(*advances, strict=True)
    queues, shards, at, action_ids, guids, _due, _rescheduled = zip(*rows, strict=True)
    queue = queues[0]
    if None in to or queues.count(queue) < count:
        return False
    keys_and_to = (
        *(columns.numbers(shards), columns.numbers(at), columns.texts(action_ids), columns.texts(guids)),
        columns.numbers(to),
    )
    try:
        if status.count(None) == seen.count(None) == count:
            answer = await calls.change(_BEGIN[queue], *keys_and_to, *mark, patience=patience)
        elif queue is Queue.PROCESSING and None not in status and None not in seen:
            outcome = columns.numbers(seen), status, columns.numbers(planned)
            answer = await calls.change(
                "finish_in_processing", *keys_and_to, *outcome, *mark, count, _HINDERED, patience=patience
            )
        else:
            return False
    except StoreError as error:
        if isinstance(error.__cause__, asyncpg.InvalidTextRepresentationError | asyncpg.UniqueViolationError):
            return False
        raise
    done: int = answer.rows[0][0]
    return done == count


async def _advance_as_judged(
    calls: Calls,
    advances: Sequence[Advance],
    pending: list[int],
    mark: Mark,
    patience: Patience,
    *,
    is_of_replay: bool,
) -> list[AdvanceOutcome]:
    """Find out of each whether it can be carried out, and do what can be done. `pending` are places in their order."""
    outcomes = [AdvanceOutcome.DONE] * len(advances)
    while pending:
        answer = await _judge(calls, [advances[n] for n in pending], mark, patience)
        is_of_replay |= answer.is_of_replay
        lost = []
        for place, judgement in answer.rows:
            n = pending[place]
            if judgement == LOST:
                lost.append(n)
            else:
                outcomes[n] = _OUTCOMES[judgement]
        pending = again(lost, patience)
    if is_of_replay:
        # What our first try moved may have been moved on since then.
        return [AdvanceOutcome.UNKNOWN if outcome is AdvanceOutcome.GONE else outcome for outcome in outcomes]
    return outcomes


async def _judge(calls: Calls, advances: Sequence[Advance], mark: Mark, patience: Patience) -> Answer:
    batch = columns.of_advances(advances)
    try:
        return await calls.change("advance", *batch, *mark, patience=patience)
    except StoreError as error:
        if not isinstance(error.__cause__, asyncpg.UniqueViolationError):
            raise
    # Only where an action has two live rows: whoever meets them must be able to go on.
    *keys_and_to, _seen, _status, _planned = batch
    await calls.change("make_room", *keys_and_to, patience=patience)
    return await calls.change("advance", *batch, *mark, patience=patience)
