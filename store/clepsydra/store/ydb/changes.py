"""The writes: each is one serializable text that touches points only, and is tried until its outcome is known."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.errors import OutcomeUnknown
from clepsydra.store.port import (
    Acquired,
    Action,
    Advance,
    AdvanceOutcome,
    Heartbeat,
    Lock,
    Mark,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
)
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.errors import Failed, Nature
from clepsydra.store.ydb.lookups import FreeLock, Lookups
from clepsydra.store.ydb.sessions import Parameters, Results, Sessions
from clepsydra.store.ydb.tries import Answer, Tries

# No more rows in one text than the server returns in one result, and no more bytes than half of what it takes.
_ROWS = 1000
_BYTES = 24 * 1024 * 1024

# Each look finds locks that others take first: by then it is somebody else's turn.
_LOOKS = 100

_DONE = PutResult(PutOutcome.DONE)

_ADVANCE_OUTCOMES = {
    "done": AdvanceOutcome.DONE,
    "move": AdvanceOutcome.DONE,
    "remove": AdvanceOutcome.DONE,
    "stale": AdvanceOutcome.STALE,
    "gone": AdvanceOutcome.GONE,
}


class Changes:
    def __init__(self, sessions: Sessions, lookups: Lookups, tries: Tries) -> None:
        self._sessions = sessions
        self._lookups = lookups
        self._tries = tries

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        parts = _parts(list(range(len(puts))), [_size_of_put(put) for put in puts])
        answers = await self._tries.write_batch(parts, lambda places: self._send_puts(puts, places))
        results = [answers[place] for place in range(len(puts))]
        # The port has no outcome for "was it mine?", so the call as a whole is unknown; what is done stays done, and
        # is recognised when the call is repeated.
        for put, answer in zip(puts, results, strict=True):
            if answer.after_unknown and answer.outcome.outcome is not PutOutcome.DONE:
                _raise_unknown(put)
        return [answer.outcome for answer in results]

    async def _send_puts(self, puts: Sequence[Put], places: Sequence[int]) -> dict[int, PutResult]:
        batch = [(place, puts[place]) for place in places]
        sent = {
            "$puts": parameters.puts(batch),
            "$oldest_created_at": parameters.time(min(put.created_at_us for _, put in batch)),
            "$call_retry": parameters.CALL_RETRY,
        }
        try:
            results = await self._sessions.write("put", sent)
        except Failed as failed:
            if failed.nature is not Nature.TOO_LATE:
                raise
            return await self._send_those_in_time(puts, places)
        return {row["n"]: _put_result(puts[row["n"]], row) for row in results.rows()}

    async def _send_those_in_time(self, puts: Sequence[Put], places: Sequence[int]) -> dict[int, PutResult]:
        """One of them is too late, and the server refused them all: sort them out, and send the others."""
        results = await self._read_current(puts, places)
        fresh = [place for place in places if place not in results]
        if len(fresh) == len(places):
            raise Failed(Nature.NOT_DONE, "two of the server's clocks disagree on whether a put is too late")
        return results | await self._send_puts(puts, fresh) if fresh else results

    async def _read_current(self, puts: Sequence[Put], places: Sequence[int]) -> dict[int, PutResult]:
        keys = parameters.action_keys([puts[place].action.action_id for place in places])
        try:
            read = await self._sessions.read("current_of_late", {"$keys": keys})
        except Failed as failed:
            if failed.nature is Nature.UNKNOWN:
                raise Failed(Nature.NOT_DONE, str(failed)) from failed
            raise
        current = {row["meta_action_id"]: row for row in read.rows()}
        results = {}
        for place in places:
            put, row = puts[place], current.get(puts[place].action.action_id)
            if row is not None and _is_done(put, row):
                results[place] = _DONE
            elif row is not None and put.created_at_us < row["store_now"] - CALL_RETRY_US:
                results[place] = PutResult(PutOutcome.TOO_LATE)
        return results

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        parts = []
        for queue in (Queue.PROCESSING, Queue.INCOMING):
            places = [place for place, advance in enumerate(advances) if advance.row.queue is queue]
            parts += _parts(places, [len(advances[place].status or b"") for place in places])
        answers = await self._tries.write_batch(parts, lambda places: self._send_advances(advances, places, mark))
        return [_unless_unknown(answers[place]) for place in range(len(advances))]

    async def _send_advances(
        self, advances: Sequence[Advance], places: Sequence[int], mark: Mark
    ) -> dict[int, AdvanceOutcome]:
        is_incoming = advances[places[0]].row.queue is Queue.INCOMING
        results = await self._sessions.write(
            "advance_from_incoming" if is_incoming else "advance_in_processing",
            {"$advances": parameters.advances([(place, advances[place]) for place in places]), **_marked(mark)},
        )
        return {row["n"]: _ADVANCE_OUTCOMES[row["judgement"]] for row in results.rows()}

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        """How many were moved by tries that told it: a row moved by a try of unknown outcome is not counted."""
        moving = list(dict.fromkeys(row for row in rows if row.queue is Queue.INCOMING))
        moved = 0

        async def send(places: Sequence[int]) -> dict[int, None]:
            nonlocal moved
            keys = parameters.incoming_keys([moving[place] for place in places])
            results = await self._sessions.write("migrate", {"$rows": keys, **_marked(mark)})
            moved += sum(row["moved"] for row in results.rows())
            return dict.fromkeys(places)

        await self._tries.write_batch(_parts(list(range(len(moving))), [0] * len(moving)), send)
        return moved

    async def drop(self, rows: Sequence[Row]) -> None:
        async def send(places: Sequence[int]) -> dict[int, None]:
            dropped = [rows[place] for place in places]
            incoming = parameters.incoming_keys([row for row in dropped if row.queue is Queue.INCOMING])
            processing = parameters.processing_keys([row for row in dropped if row.queue is Queue.PROCESSING])
            await self._sessions.write("drop", {"$incoming": incoming, "$processing": processing})
            return dict.fromkeys(places)

        await self._tries.write_batch(_parts(list(range(len(rows))), [0] * len(rows)), send)

    async def check_writable(self) -> None:
        """Delete no rows: the server checks the permission before it finds out that there is nothing to do."""
        nothing = {"$incoming": parameters.incoming_keys([]), "$processing": parameters.processing_keys([])}
        await self._tries.write(lambda: self._sessions.write("drop", nothing))

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        for _ in range(_LOOKS):
            seen, store_now_us = await self._free_locks(lock_guid, stale_before_us)
            for lock in seen:
                if lock.locked and lock.guid == lock_guid:
                    return Acquired(Lock(lock.shard_id, lock_guid), store_now_us)
            free = [lock for lock in seen if lock.is_free(stale_before_us)]
            if not free:
                return None
            # Whichever cannot be had was taken by someone else meanwhile: the next may still be free.
            for lock in sorted(free, key=lambda lock: (lock.processing_start_at_us, lock.shard_id)):
                acquired = await self._take(lock, lock_guid, worker, now_us)
                if acquired is not None:
                    return acquired
        return None

    async def _take(self, lock: FreeLock, lock_guid: str, worker: str, now_us: int) -> Acquired | None:
        sent = {
            "$shard_id": parameters.number(lock.shard_id),
            "$seen_locked": parameters.flag(lock.locked),
            "$seen_guid": parameters.text(lock.guid),
            "$seen_heartbeat_at": parameters.time(lock.heartbeat_at_us),
            "$guid": parameters.text(lock_guid),
            "$worker": parameters.text(worker),
            "$now": parameters.time(now_us),
        }
        results = await self._tries.write(lambda: self._sessions.write("acquire", sent))
        for row in results.rows():
            if row["acquired"]:
                return Acquired(Lock(lock.shard_id, lock_guid), row["store_now"])
        return None

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        # What waits is read beside the write, not in it: that would be a range, and aborted by every other heartbeat.
        kept, free = await asyncio.gather(
            self._keep(locks, now_us), self._free_locks("", stale_before_us), return_exceptions=True
        )
        if isinstance(kept, BaseException):
            raise kept
        if isinstance(free, BaseException):
            raise free
        others, store_now_us = free
        waiting = sum(lock.is_free(stale_before_us) for lock in others if lock.shard_id not in kept)
        waiting += sum(heartbeat_at_us < stale_before_us for heartbeat_at_us in kept.values())
        lost = frozenset(lock.shard_id for lock in locks if lock.shard_id not in kept)
        return Heartbeat(lost, waiting, store_now_us)

    async def _keep(self, locks: Sequence[Lock], now_us: int) -> dict[int, int]:
        """Which of the locks are still ours, and the heartbeat that they have now."""
        kept: dict[int, int] = {}
        for start in range(0, len(locks), _ROWS):
            sent = {"$locks": parameters.lock_keys(locks[start : start + _ROWS]), "$now": parameters.time(now_us)}
            results = await self._tries.write(partial(self._send_heartbeat, sent))
            kept |= {row["shard_id"]: row["last_heartbeat_at"] for row in results.rows()}
        return kept

    async def _send_heartbeat(self, sent: Parameters) -> Results:
        results = await self._sessions.write("heartbeat", sent)
        if results.is_truncated():
            # What is missing must not look lost.
            raise Failed(Nature.UNKNOWN, "the server told of some locks only")
        return results

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        if locks:
            sent = {"$locks": parameters.lock_keys(locks), "$now": parameters.time(now_us)}
            await self._tries.write(lambda: self._sessions.write("release", sent))

    async def _free_locks(self, guid: str, stale_before_us: int) -> tuple[list[FreeLock], int]:
        return await self._tries.read(lambda: self._lookups.free_locks(guid, max(0, stale_before_us)))


def _put_result(put: Put, row: dict[str, Any]) -> PutResult:
    if row["judgement"] != "conflict":
        return _DONE
    if row["meta_action_guid"] is None:
        return PutResult(PutOutcome.CONFLICT)
    current = Action(
        put.action.action_id,
        row["meta_action_guid"],
        row["meta"],
        row["spec"],
        row["status"],
        row["status_scheduled_at"],
    )
    return PutResult(PutOutcome.CONFLICT, current)


def _is_done(put: Put, row: dict[str, Any]) -> bool:
    """A replay finds its own guid current, or its own meta where the life stays the same."""
    if put.shard_id is None:
        return bool(row["meta"] == put.action.meta)
    return bool(row["meta_action_guid"] == put.action.guid)


def _unless_unknown(answer: Answer[AdvanceOutcome]) -> AdvanceOutcome:
    if answer.after_unknown and answer.outcome is AdvanceOutcome.GONE:
        return AdvanceOutcome.UNKNOWN
    return answer.outcome


def _raise_unknown(put: Put) -> NoReturn:
    raise OutcomeUnknown(
        f"a try to change action {put.action.action_id!r} got no answer, and by now the action is another; "
        "repeat the call as it was"
    )


def _marked(mark: Mark) -> dict[str, parameters.Typed]:
    return {"$sync_guid": parameters.text(mark.sync_guid), "$at": parameters.time(mark.at_us)}


def _size_of_put(put: Put) -> int:
    action, seen = put.action, put.seen
    return len(action.meta) + len(action.spec) + len(action.status) + (0 if seen is None else len(seen.meta))


def _parts(places: Sequence[int], sizes: Sequence[int]) -> list[list[int]]:
    """As few parts as the limits allow, in their order."""
    parts: list[list[int]] = []
    room = 0
    for place, size in zip(places, sizes, strict=True):
        if not parts or len(parts[-1]) == _ROWS or size > room:
            parts.append([])
            room = _BYTES
        parts[-1].append(place)
        room -= size
    return parts
