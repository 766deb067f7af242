"""Questions of operators about whole tables, each answered from one snapshot."""

import json
from typing import Any

import apsw

from clepsydra.core.state_bytes import count_states
from clepsydra.store.port import Audit, Load, LockInfo, Queue, Row, Stats, Violation
from clepsydra.store.sqlite.connection.connect import fetch, value
from clepsydra.store.sqlite.connection.thread import OperationRunner


class Audits:
    _reader: OperationRunner

    async def locks(self) -> list[LockInfo]:
        rows = await self._reader.run(lambda connection: fetch(connection, "locks"))
        return [LockInfo(row[0], bool(row[1]), *row[2:9])._replace(load=Load(*row[9:])) for row in rows]

    async def stats(self, now_us: int) -> Stats:
        return await self._reader.run(lambda connection: _stats(connection, now_us))

    async def audit(self, limit: int) -> Audit:
        return await self._reader.run(lambda connection: _audit(connection, limit))


def _stats(connection: apsw.Connection, now_us: int) -> Stats:
    *load, due_waiting = value(connection, "load", {"now": now_us})
    stats = Stats(*value(connection, "stats", {"now": now_us}))
    states = count_states(fetch(connection, "states"))
    return stats._replace(load=Load(*load), due_waiting=due_waiting, states=states)


def _audit(connection: apsw.Connection, limit: int) -> Audit:
    actions, live_rows, rows, with_row, with_several_rows, deleted = value(connection, "audit_counts")
    violations = []
    if with_row != actions or with_several_rows:
        violations = [
            Violation(action_id, guid, [_row_of(action_id, guid, *row) for row in json.loads(found)])
            for action_id, guid, found in fetch(connection, "audit_violations", {"limit": limit})
        ]
    return Audit(
        actions=actions,
        live_rows=live_rows,
        stale_rows=rows - live_rows,
        without_row=actions - with_row,
        with_several_rows=with_several_rows,
        violations=violations,
        stray_shards=tuple(shard_id for (shard_id,) in fetch(connection, "audit_stray_shards")),
        deleted=deleted,
    )


def _row_of(action_id: str, guid: str, is_incoming: int, shard_id: int, at_us: int, *times_us: Any) -> Row:
    queue = Queue.INCOMING if is_incoming else Queue.PROCESSING
    return Row(queue, shard_id, at_us, action_id, guid, *times_us)
