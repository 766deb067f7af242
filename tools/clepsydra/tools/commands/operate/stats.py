"""`clepsydra stats`: counts what is in a store."""

import asyncio

import click

from clepsydra.store.port import Stats
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.format.tables import console, name_value_table
from clepsydra.tools.format.times import relative_time, rfc3339
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.stores import readable_store


@click.command(
    "stats",
    epilog="""\b
Examples:
  clepsydra stats
  clepsydra stats --json | jq .due_rows

Actions include ended and removed ones until they are purged. Rows include stale rows, with old guids, until a worker
deletes them.""",
)
@flags.as_json
@flags.store
@flags.with_settings
def stats_command(settings: Settings, as_json: bool) -> None:
    """Count what is in a store: actions, rows of each queue, due rows, locks."""
    stats, now_us = asyncio.run(_stats(settings.store))
    if as_json:
        numbers = stats._asdict()
        earliest_us = numbers.pop("earliest_us")
        print_json({**numbers, "earliest_time": None if earliest_us is None else rfc3339(earliest_us)})
        return
    earliest = "-" if stats.earliest_us is None else relative_time(stats.earliest_us, now_us)
    console().print(
        name_value_table(
            [
                ("actions", f"{stats.actions:,}"),
                ("rows in incoming_queue", f"{stats.incoming_rows:,}"),
                ("rows in processing_queue", f"{stats.processing_rows:,}"),
                ("rows that are due", f"{stats.due_rows:,}"),
                ("earliest row is due", earliest),
                ("shards", f"{stats.shards:,}, {stats.locked_shards:,} of them locked"),
            ]
        )
    )


async def _stats(url: str) -> tuple[Stats, int]:
    async with readable_store(url) as store:
        now_us = await store.now()
        return await store.stats(now_us), now_us
