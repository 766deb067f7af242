"""The reads, each in one snapshot."""

from collections.abc import Sequence
from typing import Any

from clepsydra.store.port import Action, Due, LockInfo, Page, Queue, Row, StalePage, Stats
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.errors import Failed, Nature
from clepsydra.store.ydb.hashing import id_hash
from clepsydra.store.ydb.ranges import Position, Range, read_ranges
from clepsydra.store.ydb.sessions import Parameters, Results, Sessions

# So many keys are looked up by one request: the server's limit on rows in a result.
_KEYS = 1000
# So many shards are counted by one request.
_SHARDS = 500
# Shards are counted in hundreds: this is all of them.
_ALL_LOCKS = 1_000_000


class FreeLock:
    """A lock as a snapshot showed it: free, or stale, or held under the guid that was asked for."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.shard_id: int = columns["shard_id"]
        self.locked: bool = columns["locked"]
        self.guid: str = columns["last_lock_guid"]
        self.processing_start_at_us: int = columns["last_processing_start_at"]
        self.heartbeat_at_us: int = columns["last_heartbeat_at"]

    def is_free(self, stale_before_us: int) -> bool:
        return not self.locked or self.heartbeat_at_us < stale_before_us


class Lookups:
    def __init__(self, sessions: Sessions, timeout_s: float, scan_timeout_s: float) -> None:
        self._sessions = sessions
        self._timeout_s = timeout_s
        self._scan_timeout_s = scan_timeout_s

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        wanted = list(dict.fromkeys(action_ids))
        found: dict[str, Action] = {}
        waiting = [wanted[start : start + _KEYS] for start in range(0, len(wanted), _KEYS)]
        while waiting:
            keys = waiting.pop()
            results = await self._sessions.read("get", {"$keys": parameters.action_keys(keys)})
            found |= {row["meta_action_id"]: _action(row) for row in results.rows()}
            if results.is_truncated():
                if not results.rows():
                    raise Failed(Nature.HOPELESS, "the server sends no rows of a result that has some")
                waiting.append([key for key in keys if key not in found])
        return [found.get(action_id) for action_id in action_ids]

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        after = (0, "") if after_id is None else (id_hash(after_id), after_id)
        page = Range(after, limit, _action_position, _after_action)
        await read_ranges(self._sessions, "list_actions", {}, [page], self._timeout_s)
        return [_action(row) for row in page.rows]

    async def free_locks(self, guid: str, stale_before_us: int) -> tuple[list[FreeLock], int]:
        """Every lock that is free, stale or held under this guid; and the store's time."""
        locks = Range((0,), _ALL_LOCKS, lambda row: (row["shard_id"] + 1,), _from_shard)
        fixed = {"$guid": parameters.text(guid), "$stale_before": parameters.time(stale_before_us)}
        results = await read_ranges(self._sessions, "free_locks", fixed, [locks], self._timeout_s)
        return [FreeLock(row) for row in locks.rows], _store_now(results, 1)

    async def due(
        self, shard_id: int, incoming_from_us: int, incoming_limit: int, from_us: int, until_us: int, limit: int
    ) -> Page:
        incoming = Range((incoming_from_us, "", ""), incoming_limit, _incoming_position, _after_incoming)
        due = Range((from_us, "", ""), limit, _processing_position, _after_due)
        fixed = {"$shard_id": parameters.number(shard_id), "$until": parameters.time(until_us)}
        await read_ranges(self._sessions, "due", fixed, [incoming, due], self._timeout_s)
        return Page(
            [Due(_incoming_row(shard_id, row), _live_action(row)) for row in incoming.rows],
            [Due(_processing_row(shard_id, row), _live_action(row)) for row in due.rows],
        )

    async def soon(self, shard_id: int, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        soon = Range((incoming_from_us, "", ""), limit, _incoming_position, _after_incoming)
        fixed = {"$shard_id": parameters.number(shard_id), "$until": parameters.time(until_us)}
        await read_ranges(self._sessions, "soon", fixed, [soon], self._timeout_s)
        return [_incoming_row(shard_id, row) for row in soon.rows]

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        start = (from_us, "", "") if after is None else max(after, (from_us, "", ""))
        # One more than wanted tells whether there is more.
        page = Range(start, limit + 1, _processing_position, _after_processing)
        fixed = {"$shard_id": parameters.number(shard_id)}
        await read_ranges(self._sessions, "stale", fixed, [page], self._timeout_s)
        rows = page.rows[:limit]
        return StalePage(
            [_processing_row(shard_id, row) for row in rows if not row["is_live"]],
            _processing_position(rows[-1]) if len(page.rows) > limit else None,
            len(rows),
        )

    async def now(self) -> int:
        return _store_now(await self._sessions.read("now", {}), 0)

    async def locks(self, shards: int) -> list[LockInfo]:
        if shards <= _SHARDS:
            results = await self._sessions.read("locks", _shards(0, shards), self._scan_timeout_s)
            if not _is_any_truncated(results):
                return _lock_infos(results)
        infos: list[LockInfo] = []
        start, step = 0, _SHARDS
        async with self._sessions.snapshot(self._scan_timeout_s) as snapshot:
            while start < shards:
                results = await snapshot.read("locks", _shards(start, min(start + step, shards)))
                if _is_any_truncated(results) and step > 1:
                    step //= 2
                else:
                    infos += _lock_infos(results)
                    start += step
        return infos

    async def stats(self, now_us: int) -> Stats:
        results = await self._sessions.read("stats", {"$now": parameters.time(now_us)}, self._scan_timeout_s)
        [actions], [incoming], [processing], [locks] = (results.rows(index) for index in range(4))
        return Stats(
            actions=actions["actions"],
            incoming_rows=incoming["row_count"],
            processing_rows=processing["row_count"],
            due_rows=incoming["due_count"] + processing["due_count"],
            earliest_us=_earliest(incoming["earliest"], processing["earliest"]),
            shards=locks["shards"],
            locked_shards=locks["locked"],
        )


def _action(row: dict[str, Any]) -> Action:
    return Action(
        row["meta_action_id"],
        row["meta_action_guid"],
        row["meta"],
        row["spec"],
        row["status"],
        row["status_scheduled_at"],
    )


def _live_action(row: dict[str, Any]) -> Action | None:
    if not row["is_live"]:
        return None
    return Action(
        row["action_id"], row["action_guid"], row["meta"], row["spec"], row["status"], row["status_scheduled_at"]
    )


def _incoming_row(shard_id: int, row: dict[str, Any]) -> Row:
    return Row(Queue.INCOMING, shard_id, *_incoming_position(row), row["scheduled_at"])


def _processing_row(shard_id: int, row: dict[str, Any]) -> Row:
    position = _processing_position(row)
    return Row(Queue.PROCESSING, shard_id, *position, position[0], row["last_reschedule_at"])


def _action_position(row: dict[str, Any]) -> Position:
    return row["meta_action_id_hash"], row["meta_action_id"]


def _incoming_position(row: dict[str, Any]) -> tuple[int, str, str]:
    return row["created_at"], row["action_id"], row["action_guid"]


def _processing_position(row: dict[str, Any]) -> tuple[int, str, str]:
    return row["scheduled_at"], row["action_id"], row["action_guid"]


def _after_action(after: Position, limit: int) -> Parameters:
    return {
        "$after_hash": parameters.number(after[0]),
        "$after_id": parameters.text(after[1]),
        "$limit": parameters.number(limit),
    }


def _from_shard(start: Position, limit: int) -> Parameters:
    return {"$from_shard": parameters.number(start[0]), "$limit": parameters.number(limit)}


def _after_incoming(after: Position, limit: int) -> Parameters:
    return _after_row("incoming_", "incoming_limit", after, limit)


def _after_due(after: Position, limit: int) -> Parameters:
    return _after_row("due_", "due_limit", after, limit)


def _after_processing(after: Position, limit: int) -> Parameters:
    return _after_row("after_", "limit", after, limit)


def _after_row(prefix: str, limit_name: str, after: Position, limit: int) -> Parameters:
    at_us, action_id, guid = after
    return {
        f"${prefix}at": parameters.time(max(0, at_us)),
        f"${prefix}id": parameters.text(action_id),
        f"${prefix}guid": parameters.text(guid),
        f"${limit_name}": parameters.number(limit),
    }


def _shards(start: int, end: int) -> Parameters:
    return {"$from_shard": parameters.number(start), "$to_shard": parameters.number(end)}


def _lock_infos(results: Results) -> list[LockInfo]:
    incoming = {row["shard_id"]: row for row in results.rows(1)}
    processing = {row["shard_id"]: row for row in results.rows(2)}
    nothing = {"row_count": 0, "earliest": None}
    infos = []
    for row in results.rows(0):
        shard_id = row["shard_id"]
        came_in, waits = incoming.get(shard_id, nothing), processing.get(shard_id, nothing)
        infos.append(
            LockInfo(
                shard_id,
                row["locked"],
                row["last_lock_guid"],
                row["last_locked_by"],
                row["last_processing_start_at"],
                row["last_heartbeat_at"],
                came_in["row_count"],
                waits["row_count"],
                _earliest(came_in["earliest"], waits["earliest"]),
            )
        )
    return infos


def _is_any_truncated(results: Results) -> bool:
    return any(results.is_truncated(index) for index in range(3))


def _store_now(results: Results, index: int) -> int:
    [row] = results.rows(index)
    now_us: int = row["store_now"]
    return now_us


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
