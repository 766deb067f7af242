"""The writes of workers.

The caller's thread prepares the statement and its parameters, so that the writer's thread has little to do in Python.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain

import apsw

from clepsydra.store.batch import check_named_once
from clepsydra.store.port import Advance, AdvanceOutcome, Mark, Queue, Row
from clepsydra.store.sqlite.connection.connect import fetch, run
from clepsydra.store.sqlite.connection.multi_row_insert import View, load, view_portions
from clepsydra.store.sqlite.connection.thread import Operation, OperationRunner
from clepsydra.store.sqlite.connection.transaction import SingleStatement
from clepsydra.store.sqlite.range_begin import range_begin

_MIGRATIONS = View("migrations", shared=2, own=4)
_ADVANCES = {
    Queue.INCOMING: View("advances_from_incoming", shared=2, own=8),
    Queue.PROCESSING: View("advances_in_processing", shared=2, own=8),
}
_JUDGES = {
    Queue.INCOMING: "judge_advances_from_incoming",
    Queue.PROCESSING: "judge_advances_in_processing",
}
_DROPS = {Queue.INCOMING: "drop_from_incoming", Queue.PROCESSING: "drop_from_processing"}

# By the judgements of advance.sql.
_REFUSALS = {"d": AdvanceOutcome.DONE, "s": AdvanceOutcome.STALE, "g": AdvanceOutcome.GONE}


class Advances:
    _writer: OperationRunner

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        if not advances:
            return []
        check_named_once(advance.row.action_id for advance in advances)
        return await self._writer.run(advance_operation(advances, mark))

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        if not rows:
            return 0
        # Nobody waits for it, and what is due goes first.
        return await self._writer.run(lambda connection: _migrate(connection, rows, mark), can_wait=True)

    async def drop(self, rows: Sequence[Row]) -> None:
        if rows:
            await self._writer.run(lambda connection: _drop(connection, rows), can_wait=True)


def advance_operation(advances: Sequence[Advance], mark: Mark) -> Operation[list[AdvanceOutcome]]:
    queue = advances[0].row.queue
    if [each.row.queue for each in advances].count(queue) < len(advances):
        return partial(_advance_both_queues, advances=advances, mark=mark)
    return range_begin(advances, mark, fallback=partial(_advance_queue, advances, mark)) or _advance_queue(
        advances, mark
    )


def _advance_both_queues(connection: apsw.Connection, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
    outcomes = {
        queue: iter(advance_operation([each for each in advances if each.row.queue is queue], mark)(connection))
        for queue in Queue
    }
    return [next(outcomes[each.row.queue]) for each in advances]


def _advance_queue(advances: Sequence[Advance], mark: Mark) -> Operation[list[AdvanceOutcome]]:
    """Advance rows of one queue, in as many statements as they need: nearly always one."""
    portions = [_advance_portion(portion, mark) for portion in view_portions(advances)]
    if len(portions) == 1:
        return portions[0]
    return lambda connection: [outcome for portion in portions for outcome in portion(connection)]


def _advance_portion(advances: Sequence[Advance], mark: Mark) -> SingleStatement[list[AdvanceOutcome]]:
    rows, *changes = zip(*advances, strict=True)
    queues, shards, at, action_ids, guids, *_ = zip(*rows, strict=True)
    bindings = [*mark, *chain.from_iterable(zip(shards, at, action_ids, guids, *changes, strict=True))]
    judge = partial(_judge_and_advance, advances=advances, mark=mark)
    done = [AdvanceOutcome.DONE] * len(advances)
    return SingleStatement(_ADVANCES[queues[0]].insert(bindings), bindings, done, judge)


def _judge_and_advance(connection: apsw.Connection, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
    """Find out which are refused, and why. The others cannot fail, because no other connection can write meanwhile."""
    queue = advances[0].row.queue
    load(
        connection,
        "advances",
        [(n, *each.row[1:5], each.to_us, each.seen_scheduled_at_us) for n, each in enumerate(advances)],
    )
    refused = dict(fetch(connection, _JUDGES[queue], mark))
    accepted = [each for n, each in enumerate(advances) if n not in refused]
    if accepted:
        _advance_portion(accepted, mark).execute(connection)
    _drop(connection, [advances[n].row for n, judgement in refused.items() if judgement == "s"])
    return [_REFUSALS[refused[n]] if n in refused else AdvanceOutcome.DONE for n in range(len(advances))]


def _migrate(connection: apsw.Connection, rows: Sequence[Row], mark: Mark) -> int:
    changes_before = connection.total_changes()
    for portion in view_portions(rows):
        bindings: list[object] = [*mark]
        for row in portion:
            bindings += row[1:5]
        connection.execute(_MIGRATIONS.insert(bindings), bindings)
    # Each row that existed was written to one queue and deleted from the other.
    return (connection.total_changes() - changes_before) // 2


def _drop(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    for queue, statement in _DROPS.items():
        keys = [row[1:5] for row in rows if row.queue is queue]
        if keys:
            load(connection, "row_keys", keys)
            run(connection, statement)
