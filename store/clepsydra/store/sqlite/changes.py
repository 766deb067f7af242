"""The writes, as operations on a connection: each takes its whole batch through set-based statements.

What is written most often, creations and advances, is made ready by the caller: then the writer's thread has nothing
left to do in Python but to bind it.
"""

import json
from collections.abc import Sequence
from functools import partial
from itertools import chain, repeat
from typing import TypeVar

import apsw

from clepsydra.store.port import (
    Action,
    Advance,
    AdvanceOutcome,
    Lock,
    Mark,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
)
from clepsydra.store.sqlite.batches import Table, View, large_portion, load, portions
from clepsydra.store.sqlite.connection import fetch, run, value
from clepsydra.store.sqlite.execution import Operation
from clepsydra.store.sqlite.neighbours import begin_neighbours
from clepsydra.store.sqlite.transactions import AtOnce

T = TypeVar("T")

_DONE = PutResult(PutOutcome.DONE)

_PUT_RESULTS = {
    "d": _DONE,
    "m": _DONE,
    "w": _DONE,
    "l": PutResult(PutOutcome.TOO_LATE),
    "c": PutResult(PutOutcome.CONFLICT),
}

_HINDERED = {"d": AdvanceOutcome.DONE, "s": AdvanceOutcome.STALE, "g": AdvanceOutcome.GONE}

_ACTIONS, _INCOMING = Table("scheduled_actions", columns=7), Table("incoming_queue", columns=5)
_CREATIONS = View("creations", shared=0, own=8)
_MIGRATIONS = View("migrations", shared=2, own=4)
_ADVANCES = {
    Queue.INCOMING: View("advances_from_incoming", shared=2, own=8),
    Queue.PROCESSING: View("advances_in_processing", shared=2, own=8),
}
_ADVANCE_JUDGES = {
    Queue.INCOMING: "judge_advances_from_incoming",
    Queue.PROCESSING: "judge_advances_in_processing",
}

_NOT_SEEN = (None, None, None)


def put(puts: Sequence[Put], oldest_us: int) -> Operation[list[PutResult]]:
    for seen, _, shard_id, created_at_us in puts:
        if seen is not None or shard_id is None or created_at_us < oldest_us:
            return partial(_put_as_judged, puts=puts, oldest_us=oldest_us)
    # All are creations, most likely of what is not there: then the table's own key judges them.
    parts: list[Operation[list[PutResult]]] = []
    while large := large_portion(len(puts)):
        parts.append(_create_many(puts[:large], oldest_us))
        puts = puts[large:]
    if puts:
        parts.append(_create(puts, oldest_us))
    return _one_after_the_other(parts)


def _create_many(puts: Sequence[Put], oldest_us: int) -> Operation[list[PutResult]]:
    """What `_create` does, by two statements, in less time."""
    _, actions, shards, created_at = zip(*puts, strict=True)
    action_ids, guids, meta, spec, status, scheduled_at = zip(*actions, strict=True)
    lives = zip(repeat(0), action_ids, meta, guids, spec, status, scheduled_at)  # noqa: B905 - the hash of all is 0
    rows = zip(shards, created_at, action_ids, guids, scheduled_at, strict=True)
    bound = [*chain.from_iterable(lives)], [*chain.from_iterable(rows)]

    def create(connection: apsw.Connection) -> list[PutResult]:
        lives, rows = bound
        try:
            connection.execute(_ACTIONS.insert(len(puts)), lives)
        except apsw.ConstraintError:
            return _put_as_judged(connection, puts, oldest_us)
        connection.execute(_INCOMING.insert(len(puts)), rows)
        return [_DONE] * len(puts)

    return create


def _create(puts: Sequence[Put], oldest_us: int) -> AtOnce[list[PutResult]]:
    _, actions, shards, created_at = zip(*puts, strict=True)
    bindings = [*chain.from_iterable(zip(*zip(*actions, strict=True), shards, created_at, strict=True))]
    otherwise = partial(_put_as_judged, puts=puts, oldest_us=oldest_us)
    return AtOnce(_CREATIONS.insert(bindings), bindings, [_DONE] * len(puts), otherwise)


def _put_as_judged(connection: apsw.Connection, puts: Sequence[Put], oldest_us: int) -> list[PutResult]:
    run(connection, "clear_puts")
    load(connection, "puts", [_put_row(n, put) for n, put in enumerate(puts)])
    run(connection, "judge_puts", {"oldest": oldest_us})
    judgements: str = value(connection, "put_judgements")
    if "w" in judgements:
        run(connection, "write_lives")
        run(connection, "append_to_incoming_queue")
    if "m" in judgements:
        run(connection, "write_in_same_life")
    results = [_PUT_RESULTS[judgement] for judgement in judgements]
    if "c" in judgements:
        for n, *columns in fetch(connection, "current_of_conflicts"):
            results[n] = PutResult(PutOutcome.CONFLICT, Action(*columns))
    return results


def _put_row(n: int, put: Put) -> tuple[object, ...]:
    action_id, guid, meta, spec, status, scheduled_at_us = put.action
    seen = put.seen
    seen_version = _NOT_SEEN if seen is None else (seen.guid, seen.scheduled_at_us, seen.meta)
    return (
        n,
        action_id,
        guid,
        meta,
        spec,
        status,
        scheduled_at_us,
        put.shard_id,
        put.created_at_us,
        *seen_version,
        None,
    )


def migrate(connection: apsw.Connection, rows: Sequence[Row], mark: Mark) -> int:
    changes_before = connection.total_changes()
    for portion in portions(rows):
        bindings: list[object] = [*mark]
        for row in portion:
            bindings += row[1:5]
        connection.execute(_MIGRATIONS.insert(bindings), bindings)
    # Each row that was there was written to one queue and deleted from the other.
    return (connection.total_changes() - changes_before) // 2


def drop(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    for queue in Queue:
        _drop(connection, queue, [row for row in rows if row.queue is queue])


def _drop(connection: apsw.Connection, queue: Queue, rows: Sequence[Row]) -> None:
    if rows:
        _load_keys(connection, rows)
        run(connection, "drop_from_incoming" if queue is Queue.INCOMING else "drop_from_processing")


def _load_keys(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    run(connection, "clear_row_keys")
    load(connection, "row_keys", [(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows])


def advance(advances: Sequence[Advance], mark: Mark) -> Operation[list[AdvanceOutcome]]:
    queue = advances[0].row.queue
    if [each.row.queue for each in advances].count(queue) < len(advances):
        return partial(_advance_in_both, advances=advances, mark=mark)
    one_by_one = partial(_advance_one_by_one, queue, advances, mark)
    return begin_neighbours(advances, mark, otherwise=one_by_one) or one_by_one()


def _advance_one_by_one(queue: Queue, advances: Sequence[Advance], mark: Mark) -> Operation[list[AdvanceOutcome]]:
    return _one_after_the_other([_advance(queue, portion, mark) for portion in portions(advances)])


def _advance_in_both(connection: apsw.Connection, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
    outcomes = {
        queue: iter(advance([each for each in advances if each.row.queue is queue], mark)(connection))
        for queue in Queue
    }
    return [next(outcomes[each.row.queue]) for each in advances]


def _advance(queue: Queue, advances: Sequence[Advance], mark: Mark) -> AtOnce[list[AdvanceOutcome]]:
    rows, *changes = zip(*advances, strict=True)
    _, shards, at, action_ids, guids, *_ = zip(*rows, strict=True)
    bindings = [*mark, *chain.from_iterable(zip(shards, at, action_ids, guids, *changes, strict=True))]
    otherwise = partial(_advance_as_judged, queue=queue, advances=advances, mark=mark)
    done = [AdvanceOutcome.DONE] * len(advances)
    return AtOnce(_ADVANCES[queue].insert(bindings), bindings, done, otherwise)


def _advance_as_judged(
    connection: apsw.Connection, queue: Queue, advances: Sequence[Advance], mark: Mark
) -> list[AdvanceOutcome]:
    """Find out which are hindered, and by what; the rest can be carried out at once, since nobody else writes now."""
    run(connection, "clear_advances")
    load(
        connection,
        "advances",
        [(n, *each.row[1:5], each.to_us, each.seen_scheduled_at_us) for n, each in enumerate(advances)],
    )
    hindered = dict(fetch(connection, _ADVANCE_JUDGES[queue], mark))
    free = [each for n, each in enumerate(advances) if n not in hindered]
    if free:
        _advance(queue, free, mark).done(connection)
    _drop(connection, queue, [advances[n].row for n, judgement in hindered.items() if judgement == "s"])
    return [_HINDERED[hindered[n]] if n in hindered else AdvanceOutcome.DONE for n in range(len(advances))]


def _one_after_the_other(parts: Sequence[Operation[list[T]]]) -> Operation[list[T]]:
    """A batch in parts; nearly always there is one."""
    if len(parts) == 1:
        return parts[0]
    return lambda connection: [result for part in parts for result in part(connection)]


def acquire(connection: apsw.Connection, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> int | None:
    mine: int | None = value(connection, "lock_with_guid", {"guid": lock_guid})
    if mine is not None:
        return mine
    taking = {"guid": lock_guid, "worker": worker, "now": now_us, "stale_before": stale_before_us}
    taken: int | None = value(connection, "acquire", taking)
    return taken


def heartbeat(
    connection: apsw.Connection, locks: Sequence[Lock], now_us: int, stale_before_us: int
) -> tuple[frozenset[int], int]:
    """Which of the locks were lost, and how many shards wait for a worker."""
    kept = {shard_id for (shard_id,) in fetch(connection, "heartbeat", {"now": now_us, "locks": json.dumps(locks)})}
    waiting: int = value(connection, "waiting_shards", {"stale_before": stale_before_us})
    return frozenset(lock.shard_id for lock in locks if lock.shard_id not in kept), waiting


def check_writable(connection: apsw.Connection) -> None:
    run(connection, "check_writable")


def release(connection: apsw.Connection, locks: Sequence[Lock], now_us: int) -> None:
    run(connection, "release", {"now": now_us, "locks": json.dumps(locks)})
