"""`clepsydra config`: the settings as they are, and where each comes from."""

import click

from clepsydra.tools import options
from clepsydra.tools.settings_text import as_toml
from clepsydra.tools.sources import Effective


@click.command(
    "config",
    epilog="""\b
Examples:
  clepsydra config
  clepsydra config > clepsydra.toml
  CLEPSYDRA_WORKER_LEASE_MS=20000 clepsydra config --config clepsydra.toml

In rising precedence: defaults, a TOML file (--config or CLEPSYDRA_CONFIG), the environment, flags. The variable of a
setting is CLEPSYDRA_ and its key in capitals, with _ for dots.""",
)
@options.store
@options.server
@options.listen
@options.handlers
@options.name
@options.log_flags
@options.reads_effective
def config_command(effective: Effective) -> None:
    """Print the effective settings as a TOML file, with the source of each."""
    click.echo(as_toml(effective))
