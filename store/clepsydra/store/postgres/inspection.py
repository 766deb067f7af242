"""What operators ask: questions about whole tables, each answered from one snapshot."""

from clepsydra.store.port import Audit, LockInfo, Queue, Row, Stats, Violation
from clepsydra.store.postgres.calls import Calls


async def locks(calls: Calls) -> list[LockInfo]:
    [rows] = await calls.inspect(("locks",))
    return [LockInfo(*columns) for columns in rows]


async def stats(calls: Calls, now_us: int) -> Stats:
    [[columns]] = await calls.inspect(("stats", now_us))
    return Stats(*columns)


async def audit(calls: Calls, limit: int) -> Audit:
    [[counts], found] = await calls.inspect(("audit_counts",), ("audit_violations", limit))
    actions, live, rows, with_row, with_several, stray_shards = counts
    broken: dict[tuple[str, str], list[Row]] = {}
    for action_id, guid, is_incoming, shard_id, at_us, *times_us in found:
        rows_of_action = broken.setdefault((action_id, guid), [])
        if shard_id is not None:
            queue = Queue.INCOMING if is_incoming else Queue.PROCESSING
            rows_of_action.append(Row(queue, shard_id, at_us, action_id, guid, *times_us))
    violations = [Violation(action_id, guid, its_rows) for (action_id, guid), its_rows in broken.items()]
    return Audit(actions, live, rows - live, actions - with_row, with_several, violations, tuple(stray_shards))
