"""`clepsydra up`: the store, the scheduler and the worker in one process."""

import asyncio
import os
import shutil
import sys

import click

from clepsydra.store.url import install_store
from clepsydra.store.url_options import without_password
from clepsydra.tools.process.logs import configure_logs
from clepsydra.tools.process.parts import check_listen, load_handlers, run_scheduler, run_worker
from clepsydra.tools.process.server import run_parts, run_server
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import SETTINGS, Settings
from clepsydra.tools.stores import writable_store


@click.command(
    "up",
    epilog="""\b
Examples:
  clepsydra up
  clepsydra up --store sqlite:////var/lib/clepsydra/actions.db --listen 0.0.0.0:7070
  clepsydra up --handlers app.handlers

SIGINT and SIGTERM stop it gracefully: it finishes calls, finishes attempts within worker.drain_ms, and releases its
locks. A second signal ends it at once.""",
)
@flags.store
@flags.listen
@flags.handlers
@flags.name
@flags.log_flags
@flags.with_settings
def up_command(settings: Settings) -> None:
    """Start a scheduler and a worker in one process.

    It makes the store if there is none: the file clepsydra.db, unless --store names another.
    """
    log = configure_logs(settings.log)
    load_handlers(settings.worker, log)

    check_listen(settings)

    async def serve(stop: asyncio.Event) -> None:
        await install_store(settings.store, None)
        async with writable_store(settings.store) as store:
            listening = asyncio.Event()

            def when_ready(address: str) -> None:
                _announce(address, settings, store.shards)
                listening.set()

            async def work() -> None:
                # No attempt begins in a process that is about to fail because it cannot listen.
                if await _happens_before(listening, stop):
                    await run_worker(store, settings.worker, stop, log)

            await run_parts(stop, run_scheduler(store, settings, stop, when_ready, log), work())

    run_server(serve, log)


async def _happens_before(awaited: asyncio.Event, stop: asyncio.Event) -> bool:
    events = [asyncio.ensure_future(event.wait()) for event in (awaited, stop)]
    await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
    for event in events:
        event.cancel()
    return awaited.is_set() and not stop.is_set()


def _announce(address: str, settings: Settings, shards: int) -> None:
    command = _command_to_type()
    where = "" if address == SETTINGS["server",].default else f" --server {address}"
    click.echo(f"Clepsydra listens on {address}, its store is {without_password(settings.store)} with {shards} shards.")
    click.echo(
        f'Try this in another terminal:\n\n  {command} add hello --in 5s --log "hello"{where}\n\nCtrl-C stops it.'
    )
    sys.stdout.flush()


def _command_to_type() -> str:
    """`clepsydra` if the shell finds this script under that name, or else the path of the script."""
    script = sys.argv[0]
    found = shutil.which("clepsydra")
    return "clepsydra" if found and os.path.exists(script) and os.path.samefile(found, script) else script
