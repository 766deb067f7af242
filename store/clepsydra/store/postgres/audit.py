"""Questions of operators about whole tables, each answered from one snapshot."""

from clepsydra.core.state_bytes import count_states
from clepsydra.store.port import Audit, Load, LockInfo, Queue, Row, Stats, Violation
from clepsydra.store.postgres.calls import Calls


class Audits:
    _calls: Calls

    async def locks(self) -> list[LockInfo]:
        [rows] = await self._calls.inspect(("locks",))
        return [LockInfo(*fields[:9])._replace(load=Load(*fields[9:])) for fields in rows]

    async def stats(self, now_us: int) -> Stats:
        [[fields], [[*load, due_waiting]], states] = await self._calls.inspect(
            ("stats", now_us), ("load", now_us), ("states",)
        )
        return Stats(*fields)._replace(load=Load(*load), due_waiting=due_waiting, states=count_states(states))

    async def audit(self, limit: int) -> Audit:
        [[counts], broken] = await self._calls.inspect(("audit_counts",), ("audit_violations", limit))
        actions, live_rows, rows, with_row, with_several_rows, stray_shards, deleted = counts
        rows_of: dict[tuple[str, str], list[Row]] = {}
        for action_id, guid, is_incoming, shard_id, at_us, *times_us in broken:
            rows_of_action = rows_of.setdefault((action_id, guid), [])
            if shard_id is not None:
                queue = Queue.INCOMING if is_incoming else Queue.PROCESSING
                rows_of_action.append(Row(queue, shard_id, at_us, action_id, guid, *times_us))
        return Audit(
            actions=actions,
            live_rows=live_rows,
            stale_rows=rows - live_rows,
            without_row=actions - with_row,
            with_several_rows=with_several_rows,
            violations=[Violation(action_id, guid, its_rows) for (action_id, guid), its_rows in rows_of.items()],
            stray_shards=tuple(stray_shards),
            deleted=deleted,
        )
