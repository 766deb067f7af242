"""`clepsydra stats`: counts over a whole store."""

import asyncio

import click

from clepsydra.store.port import Stats
from clepsydra.tools import options
from clepsydra.tools.output import console, facts, print_json
from clepsydra.tools.settings import Settings
from clepsydra.tools.stores import opened
from clepsydra.tools.times import relative, rfc3339


@click.command(
    "stats",
    epilog="""\b
Examples:
  clepsydra stats
  clepsydra stats --json | jq .due_rows

Actions include finished and removed ones for as long as their records are kept. Rows include those of earlier lives
that no worker has come across yet.""",
)
@options.as_json
@options.store
@options.reads_settings
def stats_command(settings: Settings, as_json: bool) -> None:
    """Count what is in a store: actions, rows in each queue, what is due, locks."""
    stats, now_us = asyncio.run(_stats(settings.store))
    if as_json:
        numbers = stats._asdict()
        earliest_us = numbers.pop("earliest_us")
        print_json({**numbers, "earliest_time": None if earliest_us is None else rfc3339(earliest_us)})
        return
    earliest = "-" if stats.earliest_us is None else relative(stats.earliest_us, now_us)
    console().print(
        facts(
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
    async with opened(url) as store:
        now_us = await store.now()
        return await store.stats(now_us), now_us
