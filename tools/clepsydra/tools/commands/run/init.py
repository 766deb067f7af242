"""`clepsydra init`: makes a store."""

import asyncio

import click

from clepsydra.store.install import SHARDS_DEFAULT
from clepsydra.store.url import install_store
from clepsydra.store.url_options import without_password
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings

_SHARDS_MAX = 4096


@click.command(
    "init",
    epilog="""\b
Examples:
  clepsydra init
  clepsydra init --store sqlite:////var/lib/clepsydra/actions.db --shards 16

It is safe to run it again: this upgrades the store of an earlier version. The number of shards cannot change; another
number is refused with exit code 4.""",
)
@click.option(
    "--shards",
    type=click.IntRange(1, _SHARDS_MAX),
    help=f"At most this many sync loops share the work. It cannot change later. [default: {SHARDS_DEFAULT}]",
)
@flags.store
@flags.with_settings
def init_command(settings: Settings, shards: int | None) -> None:
    """Make a store: its tables and its number of shards."""
    installed = asyncio.run(install_store(settings.store, shards))
    click.echo(f"The store {without_password(settings.store)} is ready, with {installed} shards.")
