"""A begin of neighbours: rows that lie next to each other in `incoming_queue` move as a range.

A worker takes what has come in in the order in which it lies there, so where much is due a batch is a range of the
queue, without a gap. Then three statements do what a trigger would do for each row, and nothing is bound for each.
What lies between the first and the last row must be these rows and no others, and all of them live: their guids tell,
which nobody else has. They are asked for under the write lock, so nothing can come between.
"""

from collections.abc import Callable, Sequence

import apsw

from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue
from clepsydra.store.sqlite.connection import run, value
from clepsydra.store.sqlite.execution import Operation

# With fewer rows the statements take longer than triggers do.
_FEWEST = 64


def begin_neighbours(
    advances: Sequence[Advance], mark: Mark, otherwise: Callable[[], Operation[list[AdvanceOutcome]]]
) -> Operation[list[AdvanceOutcome]] | None:
    """Begin them as a range; or otherwise, if they turn out not to be one. None if they cannot be."""
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
    their_guids = "".join(guids)

    def begin(connection: apsw.Connection) -> list[AdvanceOutcome]:
        # One more than they are tells that others lie among them, however many those are.
        if value(connection, "live_guids_between", (*bounds, count + 1)) != their_guids:
            return otherwise()(connection)
        run(connection, "begin_between", (*bounds, to[0], *mark))
        run(connection, "drop_between", bounds)
        return [AdvanceOutcome.DONE] * count

    return begin
