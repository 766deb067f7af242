"""The writes, as operations on a connection: each takes its whole batch through set-based statements."""

import json
from collections.abc import Sequence

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
from clepsydra.store.sqlite.batches import chunks, insert, load
from clepsydra.store.sqlite.connection import QUERIES, fetch, run, value

_DONE = PutResult(PutOutcome.DONE)

_PUT_RESULTS = {
    "d": _DONE,
    "m": _DONE,
    "w": _DONE,
    "l": PutResult(PutOutcome.TOO_LATE),
    "c": PutResult(PutOutcome.CONFLICT),
}

_HINDERED = {"d": AdvanceOutcome.DONE, "s": AdvanceOutcome.STALE, "g": AdvanceOutcome.GONE}

# Where advances from a queue are inserted, and what judges those that were not carried out.
_ADVANCING = (
    (Queue.INCOMING, "advances_from_incoming", "judge_hindered_in_incoming"),
    (Queue.PROCESSING, "advances_in_processing", "judge_hindered_in_processing"),
)

_NOT_SEEN = (None, None, None)


def put(connection: apsw.Connection, puts: Sequence[Put], oldest_us: int) -> list[PutResult]:
    for seen, _, shard_id, created_at_us in puts:
        if seen is not None or shard_id is None or created_at_us < oldest_us:
            return _judged(connection, puts, oldest_us)
    # All are creations, most likely of what is not there: then the table's own key judges them.
    results: list[PutResult] = []
    for chunk in chunks(puts):
        results += _created(connection, chunk) or _judged(connection, chunk, oldest_us)
    return results


def _created(connection: apsw.Connection, puts: Sequence[Put]) -> list[PutResult] | None:
    """Create all, or none of them: then one was there already, and SQLite has taken back the whole statement."""
    try:
        insert(connection, QUERIES["write_new_life"], [put.action for put in puts])
    except apsw.ConstraintError:
        return None
    rows = [(shard_id, created_at_us, action[0], action[1], action[5]) for _, action, shard_id, created_at_us in puts]
    insert(connection, QUERIES["append_row"], rows)
    return [_DONE] * len(puts)


def _judged(connection: apsw.Connection, puts: Sequence[Put], oldest_us: int) -> list[PutResult]:
    run(connection, "clear_puts")
    load(connection, "puts", [_put_row(n, put) for n, put in enumerate(puts)])
    run(connection, "judge_puts", {"oldest": oldest_us})
    judgements: str = value(connection, "put_judgements")
    if "w" in judgements:
        run(connection, "write_lives")
        run(connection, "append_to_incoming_queue")
    if "m" in judgements:
        run(connection, "write_metas")
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


def migrate(connection: apsw.Connection, rows: Sequence[Row], stale: Sequence[Row], mark: Mark) -> int:
    moved = 0
    if rows:
        _load_keys(connection, rows)
        value(connection, "migrate", {"sync_guid": mark.sync_guid, "at": mark.at_us})
        run(connection, "drop_from_incoming")
        moved = connection.changes()
    for queue in Queue:
        _drop(connection, queue, [row for row in stale if row.queue is queue])
    return moved


def _drop(connection: apsw.Connection, queue: Queue, rows: Sequence[Row]) -> None:
    if rows:
        _load_keys(connection, rows)
        run(connection, "drop_from_incoming" if queue is Queue.INCOMING else "drop_from_processing")


def _load_keys(connection: apsw.Connection, rows: Sequence[Row]) -> None:
    run(connection, "clear_row_keys")
    load(connection, "row_keys", [(row.shard_id, row.at_us, row.action_id, row.guid) for row in rows])


def advance(connection: apsw.Connection, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
    outcomes = [AdvanceOutcome.DONE] * len(advances)
    for queue, view, judge in _ADVANCING:
        rows = [
            (n, row[1], row[2], row[3], row[4], to_us, seen_us, status, planned_us)
            for n, (row, to_us, seen_us, status, planned_us) in enumerate(advances)
            if row[0] is queue
        ]
        if rows:
            load(connection, view, rows, mark)
            hindered = fetch(connection, judge, mark)
            if hindered:
                run(connection, "clear_hindered")
                _drop(connection, queue, [advances[n].row for n, judgement in hindered if judgement == "s"])
                for n, judgement in hindered:
                    outcomes[n] = _HINDERED[judgement]
    return outcomes


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


def release(connection: apsw.Connection, locks: Sequence[Lock], now_us: int) -> None:
    run(connection, "release", {"now": now_us, "locks": json.dumps(locks)})
