"""`clepsydra locks`: shows the shard locks."""

import asyncio
import sys

import click
from rich.live import Live
from rich.table import Table
from rich.text import Text

from clepsydra.core.times import MILLISECOND_US
from clepsydra.store.port import Store
from clepsydra.tools.format.json_output import print_json
from clepsydra.tools.format.shards import COLUMN_NAMES, RIGHT_ALIGNED, Shard, ShardState
from clepsydra.tools.format.tables import console, table
from clepsydra.tools.format.terminal import allows_escapes
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.stores import readable_store

_COLOURS = {ShardState.FREE: "dim", ShardState.HELD: "green", ShardState.STALE: "red"}


@click.command(
    "locks",
    epilog="""\b
Examples:
  clepsydra locks
  clepsydra locks --watch
  clepsydra locks --watch 0.5 --json
  clepsydra locks --json | jq '.[] | select(.state == "stale")'

WAITING counts the actions of the shard that are planned for an attempt, due or not; OLDEST DUE is the earliest of their
times. RUNNING are those with an attempt in progress; KEPT are those that are paused, have ended or were deleted. A lock
is stale when its last heartbeat is older than worker.lock_life_ms: use the same value here as for the workers.""",
)
@click.option(
    "--watch",
    type=click.FloatRange(0.1, 3600),
    is_flag=False,
    flag_value=2.0,
    metavar="[SECONDS]",
    help="Refresh every 2 seconds, or at this interval, until Ctrl-C.",
)
@flags.as_json
@flags.store
@flags.with_settings
def locks_command(settings: Settings, watch: float | None, as_json: bool) -> None:
    """Show for each shard whether its lock is free, held or stale, which worker holds it, and what waits there."""
    asyncio.run(_show(settings, watch, as_json))


async def _show(settings: Settings, watch_s: float | None, as_json: bool) -> None:
    lock_life_us = settings.worker.lock_life_ms * MILLISECOND_US
    screen = console()
    async with readable_store(settings.store) as store:
        if watch_s is None:
            _print(await _shards(store, lock_life_us), as_json, in_one_line=False)
        elif as_json or not allows_escapes(sys.stdout):
            while True:
                _print(await _shards(store, lock_life_us), as_json, in_one_line=True)
                await asyncio.sleep(watch_s)
        else:
            with Live(console=screen, auto_refresh=False) as live:
                while True:
                    live.update(_table(await _shards(store, lock_life_us)), refresh=True)
                    await asyncio.sleep(watch_s)


async def _shards(store: Store, lock_life_us: int) -> list[Shard]:
    locks = await store.locks()
    now_us = await store.now()
    return [Shard(lock, now_us, lock_life_us) for lock in locks]


def _print(shards: list[Shard], as_json: bool, *, in_one_line: bool) -> None:
    if as_json:
        print_json([shard.as_dict() for shard in shards], in_one_line=in_one_line)
    else:
        console().print(_table(shards))


def _table(shards: list[Shard]) -> Table:
    rows: list[list[str | Text]] = []
    for shard in shards:
        number, state, *others = shard.cells()
        rows.append([number, Text(state, style=_COLOURS[shard.state]), *others])
    return table(COLUMN_NAMES, rows, right=RIGHT_ALIGNED)
