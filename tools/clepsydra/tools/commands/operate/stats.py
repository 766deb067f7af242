"""`clepsydra stats`: counts what is in a store."""

import asyncio
from collections.abc import Iterator
from typing import Any

import click

from clepsydra.store.port import Stats
from clepsydra.tools.format.actions import format_state
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.format.tables import console, name_value_table
from clepsydra.tools.format.times import relative_time, rfc3339
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.stores import readable_store
from clepsydra.v1 import action_pb2


@click.command(
    "stats",
    epilog="""\b
Examples:
  clepsydra stats
  clepsydra stats --json | jq .waiting

Waiting are actions that are planned for an attempt; running are those with an attempt in progress, or in progress when
its worker died. Only kept are actions that are paused, have ended, or were deleted and are remembered until they are
purged. Rows include stale rows, with old guids, until a worker deletes them.""",
)
@flags.as_json
@flags.store
@flags.with_settings
def stats_command(settings: Settings, as_json: bool) -> None:
    """Count what is in a store: actions by state, what waits, what runs, what is only kept, rows and locks."""
    stats, now_us = asyncio.run(_stats(settings.store))
    if as_json:
        print_json(_as_dict(stats))
    else:
        console().print(name_value_table(_lines(stats, now_us)))


def _lines(stats: Stats, now_us: int) -> Iterator[tuple[str, str]]:
    load = stats.load
    yield "actions", f"{stats.actions - _deleted(stats):,}"
    for state, count in stats.states:
        if state != action_pb2.DELETED:
            yield f"  {format_state(state)}", f"{count:,}"
    yield "waiting to run", f"{load.waiting:,}, {stats.due_waiting:,} of them due"
    yield "  the next is due", "-" if load.next_us is None else relative_time(load.next_us, now_us)
    yield "running", f"{load.running:,}"
    yield "only kept", f"{load.kept:,}, {_deleted(stats):,} of them deleted actions"
    yield "rows in incoming_queue", f"{stats.incoming_rows:,}"
    yield "rows in processing_queue", f"{stats.processing_rows:,}"
    yield "shards", f"{stats.shards:,}, {stats.locked_shards:,} of them locked"


def _as_dict(stats: Stats) -> dict[str, Any]:
    return {
        "actions": stats.actions - _deleted(stats),
        "deleted": _deleted(stats),
        "states": {format_state(state): count for state, count in stats.states if state != action_pb2.DELETED},
        "waiting": stats.load.waiting,
        "due": stats.due_waiting,
        "next_time": _time(stats.load.next_us),
        "running": stats.load.running,
        "kept": stats.load.kept,
        "incoming_rows": stats.incoming_rows,
        "processing_rows": stats.processing_rows,
        "due_rows": stats.due_rows,
        "earliest_time": _time(stats.earliest_us),
        "shards": stats.shards,
        "locked_shards": stats.locked_shards,
    }


def _deleted(stats: Stats) -> int:
    """`list` does not show these."""
    return dict(stats.states).get(action_pb2.DELETED, 0)


def _time(us: int | None) -> str | None:
    return None if us is None else rfc3339(us)


async def _stats(url: str) -> tuple[Stats, int]:
    async with readable_store(url) as store:
        now_us = await store.now()
        return await store.stats(now_us), now_us
