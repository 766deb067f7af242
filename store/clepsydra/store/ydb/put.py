"""Changes by users: one serializable text that judges every put by its precondition and writes what may be written."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from clepsydra.store.batch import check_named_once
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.outcomes import Certainty
from clepsydra.store.port import Action, Put, PutOutcome, PutResult
from clepsydra.store.wakeup import Wakeups
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.batches import split
from clepsydra.store.ydb.connection.errors import TooLate
from clepsydra.store.ydb.connection.sessions import Sessions
from clepsydra.store.ydb.retry import Retry

_DONE = PutResult(PutOutcome.DONE)


class Puts:
    _sessions: Sessions
    _retry: Retry
    _wakeups: Wakeups
    # A put that is older when its text begins is refused.
    _late_after_us: int

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        if not puts:
            return []
        check_named_once(put.action.action_id for put in puts)
        parts = split(range(len(puts)), [_size_of(put) for put in puts])
        results = await self._retry.batch(parts, partial(self._send_puts, puts))
        for put, (result, certainty) in zip(puts, results, strict=True):
            _check_certain(put, result, certainty)
            if put.shard_id is not None and result.outcome is PutOutcome.DONE:
                self._wakeups.wake(put.shard_id)
        return [result for result, _ in results]

    async def _send_puts(self, puts: Sequence[Put], indexes: Sequence[int]) -> dict[int, PutResult]:
        batch = [(index, puts[index]) for index in indexes]
        sent = {
            "$puts": parameters.puts(batch),
            "$oldest_created_at": parameters.time(min(put.created_at_us for _, put in batch)),
            "$late_after": parameters.interval(self._late_after_us),
        }
        try:
            results = await self._sessions.write("put", sent)
        except TooLate:
            return await self._send_puts_in_time(puts, indexes)
        return {row["n"]: _result_of(puts[row["n"]], row) for row in results.rows()}

    async def _send_puts_in_time(self, puts: Sequence[Put], indexes: Sequence[int]) -> dict[int, PutResult]:
        """One put is late, and the server refused them all: find which are done or late, and send the others."""
        results = await self._find_done_or_late(puts, indexes)
        in_time = [index for index in indexes if index not in results]
        if len(in_time) == len(indexes):
            raise Unavailable("two of the server's clocks disagree on whether a put is too late")
        return results | await self._send_puts(puts, in_time) if in_time else results

    async def _find_done_or_late(self, puts: Sequence[Put], indexes: Sequence[int]) -> dict[int, PutResult]:
        keys = parameters.action_keys([puts[index].action.action_id for index in indexes])
        read = await self._sessions.read("current_of_late", {"$keys": keys})
        current = {row["meta_action_id"]: row for row in read.rows()}
        results = {}
        for index in indexes:
            put, row = puts[index], current[puts[index].action.action_id]
            if _is_done(put, row):
                results[index] = _DONE
            elif put.created_at_us < row["store_now"] - self._late_after_us:
                results[index] = PutResult(PutOutcome.TOO_LATE)
        return results


def _result_of(put: Put, row: dict[str, Any]) -> PutResult:
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
    """A repeated put finds its own guid current, or its own meta and spec if it starts no new life."""
    if put.shard_id is None:
        return bool(row["meta"] == put.action.meta and row["spec"] == put.action.spec)
    return bool(row["meta_action_guid"] == put.action.guid)


def _check_certain(put: Put, result: PutResult, certainty: Certainty) -> None:
    """Raise for the whole call. Puts that were done stay done, and are recognised when the call is repeated."""
    try:
        certainty.check_put_results([result])
    except OutcomeUnknown as error:
        raise OutcomeUnknown(f"action {put.action.action_id!r}: {error}") from error


def _size_of(put: Put) -> int:
    action, seen = put.action, put.seen
    return len(action.meta) + len(action.spec) + len(action.status) + (0 if seen is None else len(seen.meta))
