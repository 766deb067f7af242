"""What tools read: locks, counts, and the invariant (every action has exactly one live row).

The audit reads three tables in pages, in one snapshot that is held open, and compares them in this process. A join on
the server would need both tables in its memory at once. Here an action costs about 150 bytes. The server keeps a
snapshot for minutes: a longer audit fails with the server's error.
"""

import hashlib
import heapq
from collections import Counter

from clepsydra.core.state_bytes import count_states, state_of
from clepsydra.store.port import Audit, LockInfo, Queue, Row, Stats, Violation
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection.sessions import ColumnValues, Parameters, Results, Sessions, Snapshot
from clepsydra.store.ydb.load import Loads, read_loads
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.row_scan import incoming_key, processing_key, scan_actions, scan_rows
from clepsydra.v1 import action_pb2


class Audits:
    _sessions: Sessions
    _retry: Retry
    _shards: int
    _scan_timeout_s: float

    async def locks(self) -> list[LockInfo]:
        return await self._retry.call(self._read_locks)

    async def _read_locks(self) -> list[LockInfo]:
        async with self._sessions.snapshot(self._scan_timeout_s) as snapshot:
            results = await snapshot.read("locks", _shards_between(0, self._shards))
            return _lock_infos(results, await read_loads(snapshot, self._shards, now_us=0))

    async def stats(self, now_us: int) -> Stats:
        return await self._retry.call(lambda: self._stats(now_us))

    async def _stats(self, now_us: int) -> Stats:
        async with self._sessions.snapshot(self._scan_timeout_s) as snapshot:
            results = await snapshot.read("stats", {"$now": parameters.time(now_us)})
            states = (await snapshot.read("states", {})).rows()
            loads = await read_loads(snapshot, self._shards, now_us)
        [actions], [incoming], [processing], [locks] = (results.rows(index) for index in range(4))
        return Stats(
            actions=actions["actions"],
            incoming_rows=incoming["row_count"],
            processing_rows=processing["row_count"],
            due_rows=incoming["due_count"] + processing["due_count"],
            earliest_us=_earliest(incoming["earliest"], processing["earliest"]),
            shards=locks["shards"],
            locked_shards=locks["locked"],
            load=loads.total,
            due_waiting=loads.due_waiting,
            states=count_states((row["state_bytes"], row["action_count"]) for row in states),
        )

    async def audit(self, limit: int) -> Audit:
        return await self._retry.call(lambda: self._audit(limit))

    async def _audit(self, limit: int) -> Audit:
        async with self._sessions.snapshot(self._scan_timeout_s) as snapshot:
            live: Counter[bytes] = Counter()
            stray: Counter[int] = Counter()
            for queue in Queue:
                async for row in scan_rows(snapshot, "audit", queue):
                    if row["shard_id"] < self._shards:
                        live[_digest(row["action_id"], row["action_guid"])] += 1
                    else:
                        stray[row["shard_id"]] += 1
            counts = _Counts(limit)
            async for action in scan_actions(snapshot, "audit_actions"):
                action_id, guid = action["meta_action_id"], action["meta_action_guid"]
                counts.add(action_id, guid, live.pop(_digest(action_id, guid), 0))
                counts.deleted += state_of(action["state_bytes"]) == action_pb2.DELETED
            return Audit(
                actions=counts.actions,
                live_rows=counts.live_rows,
                # Rows that no action has taken out.
                stale_rows=live.total() + stray.total(),
                without_row=counts.without_row,
                with_several_rows=counts.with_several_rows,
                violations=await _violations(snapshot, self._shards, counts.first_broken()),
                stray_shards=tuple(sorted(stray)),
                deleted=counts.deleted,
            )


class _Counts:
    def __init__(self, limit: int) -> None:
        self.actions = 0
        self.deleted = 0
        self.live_rows = 0
        self.without_row = 0
        self.with_several_rows = 0
        self._limit = limit
        self._broken: list[tuple[str, str]] = []

    def add(self, action_id: str, guid: str, rows: int) -> None:
        self.actions += 1
        self.live_rows += rows
        self.without_row += rows == 0
        self.with_several_rows += rows > 1
        if rows != 1:
            self._broken.append((action_id, guid))
            if len(self._broken) > 2 * self._limit:
                self._broken = self.first_broken()

    def first_broken(self) -> list[tuple[str, str]]:
        """Ids and guids of the first actions that break the invariant, in the order of ids."""
        return heapq.nsmallest(self._limit, self._broken)


async def _violations(snapshot: Snapshot, shards: int, broken: list[tuple[str, str]]) -> list[Violation]:
    """Read the queues again to find the rows of broken actions. Usually there is none, and nothing is read."""
    found: dict[tuple[str, str], list[Row]] = {id_and_guid: [] for id_and_guid in broken}
    if found:
        for queue in Queue:
            async for row in scan_rows(snapshot, "audit", queue):
                id_and_guid = (row["action_id"], row["action_guid"])
                if id_and_guid in found and row["shard_id"] < shards:
                    found[id_and_guid].append(_row(queue, row))
    return [Violation(*id_and_guid, found[id_and_guid]) for id_and_guid in broken]


def _digest(action_id: str, guid: str) -> bytes:
    return hashlib.blake2b(f"{guid} {action_id}".encode(), digest_size=16).digest()


def _row(queue: Queue, row: ColumnValues) -> Row:
    key = incoming_key(row) if queue is Queue.INCOMING else processing_key(row)
    return Row(queue, *key, row["scheduled_at"], row.get("last_reschedule_at"))


def _shards_between(start: int, end: int) -> Parameters:
    return {"$from_shard": parameters.number(start), "$to_shard": parameters.number(end)}


def _lock_infos(results: Results, loads: Loads) -> list[LockInfo]:
    incoming = {row["shard_id"]: row for row in results.rows(1)}
    processing = {row["shard_id"]: row for row in results.rows(2)}
    nothing = {"row_count": 0, "earliest": None}
    infos = []
    for row in results.rows(0):
        shard_id = row["shard_id"]
        in_incoming, in_processing = incoming.get(shard_id, nothing), processing.get(shard_id, nothing)
        infos.append(
            LockInfo(
                shard_id,
                row["locked"],
                row["last_lock_guid"],
                row["last_locked_by"],
                row["last_processing_start_at"],
                row["last_heartbeat_at"],
                in_incoming["row_count"],
                in_processing["row_count"],
                _earliest(in_incoming["earliest"], in_processing["earliest"]),
                loads.of(shard_id),
            )
        )
    return infos


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
