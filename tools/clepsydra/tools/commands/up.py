"""`clepsydra up`: everything in one process, for a first try and for one machine."""

import asyncio
import os
import shutil
import sys

import click

from clepsydra.store.url import install_store, without_password
from clepsydra.tools import options
from clepsydra.tools.logs import configure_logs
from clepsydra.tools.process import run_parts, run_process
from clepsydra.tools.serving import load_handlers, run_scheduler, run_worker
from clepsydra.tools.settings import SETTINGS, Settings
from clepsydra.tools.stores import opened_for_writing


@click.command(
    "up",
    epilog="""\b
Examples:
  clepsydra up
  clepsydra up --store sqlite:////var/lib/clepsydra/actions.db --listen 0.0.0.0:7070
  clepsydra up --handlers app.handlers

SIGINT and SIGTERM stop it gracefully: calls are finished, attempts are drained (worker.drain_ms at most), locks are
released. A second signal ends it at once.""",
)
@options.store
@options.listen
@options.handlers
@options.name
@options.log_flags
@options.reads_settings
def up_command(settings: Settings) -> None:
    """Start a scheduler and a worker in one process.

    The store, a SQLite file unless told otherwise, is made if it is not there.
    """
    log = configure_logs(settings.log)
    load_handlers(settings.worker, log)

    async def serve(stop: asyncio.Event) -> None:
        await install_store(settings.store, None)
        async with opened_for_writing(settings.store) as store:
            await run_parts(
                stop,
                run_scheduler(store, settings, stop, lambda address: _announce(address, settings, store.shards), log),
                run_worker(store, settings.worker, stop, log),
            )

    run_process(serve, log)


def _announce(address: str, settings: Settings, shards: int) -> None:
    command = _how_it_was_called()
    where = "" if address == SETTINGS["server",].default else f" --server {address}"
    click.echo(f"Clepsydra listens on {address}, its store is {without_password(settings.store)} with {shards} shards.")
    click.echo(
        f'Try this in another terminal:\n\n  {command} add hello --in 5s --log "hello"{where}\n\nCtrl-C stops it.'
    )
    sys.stdout.flush()


def _how_it_was_called() -> str:
    """`clepsydra` if the shell would find this very script, or else the path by which it was called."""
    script = sys.argv[0]
    found = shutil.which("clepsydra")
    return "clepsydra" if found and os.path.exists(script) and os.path.samefile(found, script) else script
