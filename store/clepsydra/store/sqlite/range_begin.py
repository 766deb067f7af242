"""Begins of adjacent rows: rows that lie next to each other in `incoming_queue` move as a range.

A worker begins what came in in the order of the queue, so if much is due a batch is a range of the queue without a gap.
Three statements then do what a trigger would do for each row, and nothing is bound for each row. The rows between the
first and the last must be the rows of the batch and no others, and all of them live. Their guids prove that, because a
guid is unique. They are read under the write lock, so nothing can change in between.
"""

from collections.abc import Callable, Sequence

import apsw

from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue
from clepsydra.store.sqlite.connection.connect import run, value
from clepsydra.store.sqlite.connection.thread import Operation

# With fewer rows the statements take longer than triggers do.
_FEWEST = 64


def range_begin(
    advances: Sequence[Advance], mark: Mark, fallback: Callable[[], Operation[list[AdvanceOutcome]]]
) -> Operation[list[AdvanceOutcome]] | None:
    """Begin them as a range, or by `fallback` if they turn out not to be one. None if they cannot be a range."""
    count = len(advances)
    if count < _FEWEST:
        return None
    rows, to, seen, status, _ = zip(*advances, strict=True)
    queues, shards, at, action_ids, guids, *_ = zip(*rows, strict=True)
    are_begins = status.count(None) == seen.count(None) == count and to[0] is not None
    if not are_begins or queues[0] is not Queue.INCOMING:
        return None
    if any(column.count(column[0]) < count for column in (queues, shards, to)):
        return None
    bounds = (shards[0], at[0], action_ids[0], guids[0], at[-1], action_ids[-1], guids[-1])
    expected_guids = "".join(guids)

    def begin(connection: apsw.Connection) -> list[AdvanceOutcome]:
        # One row more than the batch has is enough to see that there are others between its rows.
        if value(connection, "live_guids_in_range", (*bounds, count + 1)) != expected_guids:
            return fallback()(connection)
        run(connection, "begin_range", (*bounds, to[0], *mark))
        run(connection, "drop_range", bounds)
        return [AdvanceOutcome.DONE] * count

    return begin
