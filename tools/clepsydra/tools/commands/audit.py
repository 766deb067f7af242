"""`clepsydra audit`: the invariant, and whether every action can be read."""

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from clepsydra.scheduler.errors import Damaged
from clepsydra.scheduler.records import decoded
from clepsydra.store.port import Audit, Row, Store
from clepsydra.tools import options
from clepsydra.tools.exits import Exit
from clepsydra.tools.output import Counter, print_json
from clepsydra.tools.settings import Settings
from clepsydra.tools.stores import opened
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


@click.command(
    "audit",
    epilog="""\b
Examples:
  clepsydra audit
  clepsydra audit --json | jq .violations

Every action must have exactly one row that carries its current guid, in incoming_queue or in processing_queue. This is
checked on one consistent snapshot, while schedulers and workers go on. Rows with old guids are no violation: they are
counted, and workers collect them. Exit code 1: a violation, or an action that cannot be decoded.""",
)
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="Name so many violations at most.")
@options.as_json
@options.store
@options.reads_settings
def audit_command(settings: Settings, limit: int, as_json: bool) -> int:
    """Check that no action is lost: each has exactly one live row, and can be read."""
    findings = asyncio.run(_audit(settings.store, limit))
    if as_json:
        print_json(_as_dict(findings))
    else:
        for line in _lines(findings):
            click.echo(line)
    return Exit.OK if findings.is_clean else Exit.NEGATIVE


async def _audit(url: str, limit: int) -> Findings:
    async with opened(url) as store:
        audit = await store.audit(limit)
        undecodable, ids = await _find_undecodable(store, limit)
    return Findings(audit, undecodable, ids)


async def _find_undecodable(store: Store, limit: int) -> tuple[int, list[str]]:
    """Read every action, page by page: what comes and goes meanwhile does not matter here."""
    counter = Counter("actions read")
    found = read = 0
    ids: list[str] = []
    after_id: str | None = None
    while page := await store.list_actions(after_id, _PAGE):
        for action in page:
            try:
                decoded(action)
            except Damaged:
                found += 1
                if len(ids) < limit:
                    ids.append(action.action_id)
        read += len(page)
        counter.show(read)
        after_id = page[-1].action_id
    counter.clear()
    return found, ids


def _lines(findings: Findings) -> Iterator[str]:
    audit = findings.audit
    for violation in audit.violations:
        if not violation.rows:
            yield f"action {violation.action_id} (guid {violation.guid}) has no live row"
        else:
            places = "; ".join(_place(row) for row in violation.rows)
            yield f"action {violation.action_id} (guid {violation.guid}) has {len(violation.rows)} live rows: {places}"
    for action_id in findings.undecodable_ids:
        yield f"action {action_id} cannot be decoded: remove it and add it anew"
    if findings.is_clean:
        yield f"No violation: {audit.actions:,} actions, each with exactly one live row; {audit.stale_rows:,} old rows."
    else:
        yield (
            f"Of {audit.actions:,} actions, {audit.without_row:,} have no live row, {audit.with_several_rows:,} have "
            f"more than one, and {findings.undecodable:,} cannot be decoded; {audit.stale_rows:,} old rows."
        )


def _place(row: Row) -> str:
    return f"{row.queue.value}, shard {row.shard_id}, due {rfc3339(row.scheduled_at_us)}"


def _as_dict(findings: Findings) -> dict[str, Any]:
    audit = findings.audit
    return {
        "ok": findings.is_clean,
        "actions": audit.actions,
        "live_rows": audit.live_rows,
        "stale_rows": audit.stale_rows,
        "without_row": audit.without_row,
        "with_several_rows": audit.with_several_rows,
        "violations": [
            {"id": v.action_id, "guid": v.guid, "rows": [_row_as_dict(row) for row in v.rows]} for v in audit.violations
        ],
        "undecodable": findings.undecodable,
        "undecodable_ids": findings.undecodable_ids,
    }


def _row_as_dict(row: Row) -> dict[str, Any]:
    return {"queue": row.queue.value, "shard": row.shard_id, "due_time": rfc3339(row.scheduled_at_us)}
