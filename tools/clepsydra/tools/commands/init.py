"""`clepsydra init`: makes a store."""

import asyncio

import click

from clepsydra.store.url import install_store, without_password
from clepsydra.tools import options
from clepsydra.tools.settings import Settings

_SHARDS_MAX = 4096


@click.command(
    "init",
    epilog="""\b
Examples:
  clepsydra init
  clepsydra init --store sqlite:////var/lib/clepsydra/actions.db --shards 16

Running it again is fine. Another number of shards than the store has is refused with exit code 4.""",
)
@click.option(
    "--shards",
    type=click.IntRange(1, _SHARDS_MAX),
    help="How many workers' loops can share the work; fixed from then on. [default: 8]",
)
@options.store
@options.reads_settings
def init_command(settings: Settings, shards: int | None) -> None:
    """Make a store: its tables and its number of shards."""
    installed = asyncio.run(install_store(settings.store, shards))
    click.echo(f"The store {without_password(settings.store)} is ready, with {installed} shards.")
