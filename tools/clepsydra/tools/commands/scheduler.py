"""`clepsydra scheduler`: the gRPC API on a store."""

import asyncio
import sys

import click

from clepsydra.store.url import without_password
from clepsydra.tools import options
from clepsydra.tools.logs import configure_logs
from clepsydra.tools.process import run_process
from clepsydra.tools.serving import run_scheduler
from clepsydra.tools.settings import Settings
from clepsydra.tools.stores import opened_for_writing


@click.command(
    "scheduler",
    epilog="""\b
Examples:
  clepsydra scheduler --store sqlite:///clepsydra.db
  clepsydra scheduler --listen 0.0.0.0:7070 --set scheduler.tls_cert_file=tls.crt --set scheduler.tls_key_file=tls.key

Any number of schedulers may serve one store. gRPC health and reflection are served too.""",
)
@options.store
@options.listen
@options.log_flags
@options.reads_settings
def scheduler_command(settings: Settings) -> None:
    """Serve the gRPC API on a store that `clepsydra init` has made."""
    log = configure_logs(settings.log)

    def announce(address: str) -> None:
        click.echo(f"The scheduler listens on {address}, its store is {without_password(settings.store)}.")
        sys.stdout.flush()

    async def serve(stop: asyncio.Event) -> None:
        async with opened_for_writing(settings.store) as store:
            await run_scheduler(store, settings, stop, announce, log)

    run_process(serve, log)
