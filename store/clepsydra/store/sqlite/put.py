"""Changes by users.

The caller's thread prepares the statement and its parameters, so that the writer's thread has little to do in Python.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat

import apsw

from clepsydra.core.clock import Clock
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.batch import check_named_once
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.sqlite.connection.connect import fetch, run, value
from clepsydra.store.sqlite.connection.multi_row_insert import Table, View, load, table_portion
from clepsydra.store.sqlite.connection.thread import Operation, OperationRunner
from clepsydra.store.sqlite.connection.transaction import SingleStatement
from clepsydra.store.wakeup import Wakeups

_DONE = PutResult(PutOutcome.DONE)

# By the judgements of put.sql.
_RESULTS = {
    "d": _DONE,
    "m": _DONE,
    "w": _DONE,
    "l": PutResult(PutOutcome.TOO_LATE),
    "c": PutResult(PutOutcome.CONFLICT),
}

_ACTIONS, _INCOMING = Table("scheduled_actions", columns=7), Table("incoming_queue", columns=5)
_CREATIONS = View("creations", shared=0, own=8)

_NOT_SEEN = (None, None, None)


class Puts:
    _clock: Clock
    _writer: OperationRunner
    _wakeups: Wakeups

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        if not puts:
            return []
        check_named_once(put.action.action_id for put in puts)
        results = await self._writer.run(put_operation(puts, self._clock.now_us() - CALL_RETRY_US))
        # A put that was refused wakes a worker for nothing, which costs one read.
        for shard_id in {put.shard_id for put in puts}:
            if shard_id is not None:
                self._wakeups.wake(shard_id)
        return results


def put_operation(puts: Sequence[Put], oldest_us: int) -> Operation[list[PutResult]]:
    """Creations are written without being judged, because the key of the table refuses an id that is taken.

    Every other batch is judged put by put, and so are creations after such a refusal.
    """
    judge = partial(_judge_and_put, puts=puts, oldest_us=oldest_us)
    for seen, _, shard_id, created_at_us in puts:
        if seen is not None or shard_id is None or created_at_us < oldest_us:
            return judge
    done = [_DONE] * len(puts)
    return _create_many(puts, done, judge) if table_portion(len(puts)) else _create(puts, done, judge)


def _create(
    puts: Sequence[Put], done: list[PutResult], judge: Operation[list[PutResult]]
) -> SingleStatement[list[PutResult]]:
    _, actions, shards, created_at = zip(*puts, strict=True)
    bindings = [*chain.from_iterable(zip(*zip(*actions, strict=True), shards, created_at, strict=True))]
    return SingleStatement(_CREATIONS.insert(bindings), bindings, done, judge)


def _create_many(
    puts: Sequence[Put], done: list[PutResult], judge: Operation[list[PutResult]]
) -> Operation[list[PutResult]]:
    """Large portions by one statement for each table, which takes less time, and the rest by `_create`."""
    portions = []
    start = 0
    while count := table_portion(len(puts) - start):
        portions.append((count, *_values_of_tables(puts[start : start + count])))
        start += count
    rest = _create(puts[start:], done, judge) if start < len(puts) else None

    def create(connection: apsw.Connection) -> list[PutResult]:
        for count, actions, rows in portions:
            try:
                connection.execute(_ACTIONS.insert(count), actions)
            except apsw.ConstraintError:
                # The judgement recognises the portions that are written already by their guids.
                return judge(connection)
            connection.execute(_INCOMING.insert(count), rows)
        return done if rest is None else rest(connection)

    return create


def _values_of_tables(puts: Sequence[Put]) -> tuple[list[object], list[object]]:
    """The values of all rows of scheduled_actions, and those of incoming_queue."""
    _, actions, shards, created_at = zip(*puts, strict=True)
    action_ids, guids, meta, spec, status, scheduled_at = zip(*actions, strict=True)
    hashes = repeat(0)
    lives = zip(hashes, action_ids, meta, guids, spec, status, scheduled_at)  # noqa: B905 - hashes never ends
    rows = zip(shards, created_at, action_ids, guids, scheduled_at, strict=True)
    return [*chain.from_iterable(lives)], [*chain.from_iterable(rows)]


def _judge_and_put(connection: apsw.Connection, puts: Sequence[Put], oldest_us: int) -> list[PutResult]:
    load(connection, "puts", [_values_of_put(n, put) for n, put in enumerate(puts)])
    run(connection, "judge_puts", {"oldest": oldest_us})
    judgements: str = value(connection, "put_judgements")
    if "w" in judgements:
        run(connection, "write_lives")
        run(connection, "append_to_incoming_queue")
    if "m" in judgements:
        run(connection, "write_in_same_life")
    results = [_RESULTS[judgement] for judgement in judgements]
    if "c" in judgements:
        for n, *columns in fetch(connection, "current_of_conflicts"):
            results[n] = PutResult(PutOutcome.CONFLICT, Action(*columns))
    return results


def _values_of_put(n: int, put: Put) -> tuple[object, ...]:
    action_id, guid, meta, spec, status, scheduled_at_us = put.action
    seen = put.seen
    seen_version = _NOT_SEEN if seen is None else (seen.guid, seen.scheduled_at_us, seen.meta)
    row = put.shard_id, put.created_at_us
    return n, action_id, guid, meta, spec, status, scheduled_at_us, *row, *seen_version, None
