"""`clepsydra config`: prints the settings."""

import click

from clepsydra.tools.settings import flags
from clepsydra.tools.settings.loader import LoadedSettings
from clepsydra.tools.settings.toml import as_toml


@click.command(
    "config",
    epilog="""\b
Examples:
  clepsydra config
  clepsydra config > clepsydra.toml
  CLEPSYDRA_WORKER_LEASE_MS=20000 clepsydra config --config clepsydra.toml

Precedence rises in this order: defaults, a TOML file (--config or CLEPSYDRA_CONFIG), environment variables, flags. The
variable of a setting is CLEPSYDRA_ and its key in capitals, with _ for dots.""",
)
@flags.store
@flags.server
@flags.listen
@flags.handlers
@flags.name
@flags.log_flags
@flags.with_loaded_settings
def config_command(loaded: LoadedSettings) -> None:
    """Print the settings in effect as a TOML file, with the origin of each."""
    click.echo(as_toml(loaded))
