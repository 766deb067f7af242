"""The report of an audit, and the sentences of a repair."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from clepsydra.store.port import Audit, Row
from clepsydra.store.repair import Plan, Repaired
from clepsydra.tools.format.text import counted
from clepsydra.tools.format.times import rfc3339


class AuditReport(NamedTuple):
    audit: Audit
    # The number of actions that cannot be decoded, and the ids of the first ones.
    undecodable: int
    undecodable_ids: list[str]

    @property
    def is_clean(self) -> bool:
        return not (self.audit.without_row or self.audit.with_several_rows or self.undecodable)

    def lines(self) -> Iterator[str]:
        """The report for people: one line for each violation, and a summary."""
        audit = self.audit
        for violation in audit.violations:
            name = f"action {violation.action_id} (guid {violation.guid})"
            if violation.rows:
                places = "; ".join(_place(row) for row in violation.rows)
                yield f"{name} has {len(violation.rows)} live rows: {places}"
            else:
                yield f"{name} has no live row"
        for action_id in self.undecodable_ids:
            yield f"action {action_id} cannot be decoded: remove it and add it again"
        if audit.stray_shards:
            yield f"rows lie in shards that the store does not have: {', '.join(map(str, audit.stray_shards))}"
        yield self._summary()

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields."""
        audit = self.audit
        return {
            "ok": self.is_clean,
            "actions": audit.actions - audit.deleted,
            "deleted": audit.deleted,
            "live_rows": audit.live_rows,
            "stale_rows": audit.stale_rows,
            "without_row": audit.without_row,
            "with_several_rows": audit.with_several_rows,
            "violations": [
                {"id": v.action_id, "guid": v.guid, "rows": [_row_as_dict(row) for row in v.rows]}
                for v in audit.violations
            ],
            "stray_shards": list(audit.stray_shards),
            "undecodable": self.undecodable,
            "undecodable_ids": self.undecodable_ids,
        }

    def _actions(self) -> str:
        """Deleted actions are checked like all others, but `list` does not show them."""
        deleted = f" and {counted(self.audit.deleted, 'deleted one')}" if self.audit.deleted else ""
        return f"{self.audit.actions - self.audit.deleted:,} actions{deleted}"

    def _summary(self) -> str:
        audit = self.audit
        if self.is_clean:
            return f"No violation: {self._actions()}, each with exactly one live row; {audit.stale_rows:,} old rows."
        return (
            f"{self._actions()}: {audit.without_row:,} have no live row, {audit.with_several_rows:,} have more "
            f"than one, {self.undecodable:,} cannot be decoded; {audit.stale_rows:,} old rows."
        )


def format_plan(plan: Plan) -> str:
    """
    >>> format_plan(Plan(actions=1, rows=2000))
    'A repair would give 1 action a new life with one row, and remove 2,000 rows.'
    """
    if plan == Plan(0, 0):
        return "There is nothing to repair."
    return (
        f"A repair would give {counted(plan.actions, 'action')} a new life with one row, "
        f"and remove {counted(plan.rows, 'row')}."
    )


def format_repaired(repaired: Repaired) -> str:
    """
    >>> format_repaired(Repaired(actions=2, rows=1))
    '2 actions got a new life with one row, 1 row was removed.'
    """
    changed = f", {counted(repaired.changed, 'action')} changed meanwhile" if repaired.changed else ""
    were = "was" if repaired.rows == 1 else "were"
    return (
        f"{counted(repaired.actions, 'action')} got a new life with one row, "
        f"{counted(repaired.rows, 'row')} {were} removed{changed}."
    )


def _place(row: Row) -> str:
    return f"{row.queue.value}, shard {row.shard_id}, due {rfc3339(row.scheduled_at_us)}"


def _row_as_dict(row: Row) -> dict[str, Any]:
    return {"queue": row.queue.value, "shard": row.shard_id, "due_time": rfc3339(row.scheduled_at_us)}
