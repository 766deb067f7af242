"""What an audit found, in words and for programs."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from clepsydra.scheduler.codec import decode
from clepsydra.scheduler.errors import Damaged
from clepsydra.store.port import Audit, Row, Store
from clepsydra.tools.output import Counter
from clepsydra.tools.times import rfc3339

_PAGE = 1000


class Findings(NamedTuple):
    audit: Audit
    # Of the actions that cannot be decoded: how many there are, and the ids of the first of them.
    undecodable: int
    undecodable_ids: list[str]

    @property
    def is_clean(self) -> bool:
        return not (self.audit.without_row or self.audit.with_several_rows or self.undecodable)

    def lines(self) -> Iterator[str]:
        audit = self.audit
        for violation in audit.violations:
            if not violation.rows:
                yield f"action {violation.action_id} (guid {violation.guid}) has no live row"
            else:
                places = "; ".join(_place(row) for row in violation.rows)
                number = len(violation.rows)
                yield f"action {violation.action_id} (guid {violation.guid}) has {number} live rows: {places}"
        for action_id in self.undecodable_ids:
            yield f"action {action_id} cannot be decoded: remove it and add it anew"
        if audit.stray_shards:
            yield f"rows lie in shards that the store does not have: {', '.join(map(str, audit.stray_shards))}"
        if self.is_clean:
            yield (
                f"No violation: {audit.actions:,} actions, each with exactly one live row; "
                f"{audit.stale_rows:,} old rows."
            )
        else:
            yield (
                f"Of {audit.actions:,} actions, {audit.without_row:,} have no live row, {audit.with_several_rows:,} "
                f"have more than one, and {self.undecodable:,} cannot be decoded; {audit.stale_rows:,} old rows."
            )

    def as_dict(self) -> dict[str, Any]:
        audit = self.audit
        return {
            "ok": self.is_clean,
            "actions": audit.actions,
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


async def look_for_findings(store: Store, limit: int) -> Findings:
    """Audit a store, and name so many of each kind of finding at most."""
    audit = await store.audit(limit)
    return Findings(audit, *await _find_undecodable(store, limit))


async def _find_undecodable(store: Store, limit: int) -> tuple[int, list[str]]:
    """Read every action, page by page: what comes and goes meanwhile does not matter here."""
    counter = Counter("actions read")
    found = read = 0
    ids: list[str] = []
    after_id: str | None = None
    while page := await store.list_actions(after_id, _PAGE):
        for action in page:
            try:
                decode(action)
            except Damaged:
                found += 1
                if len(ids) < limit:
                    ids.append(action.action_id)
        read += len(page)
        counter.show(read)
        after_id = page[-1].action_id
    counter.clear()
    return found, ids


def _place(row: Row) -> str:
    return f"{row.queue.value}, shard {row.shard_id}, due {rfc3339(row.scheduled_at_us)}"


def _row_as_dict(row: Row) -> dict[str, Any]:
    return {"queue": row.queue.value, "shard": row.shard_id, "due_time": rfc3339(row.scheduled_at_us)}
