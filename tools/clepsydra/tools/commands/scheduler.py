"""`clepsydra scheduler`: the gRPC API on a store."""

import asyncio
import sys

import click
from structlog.typing import FilteringBoundLogger

from clepsydra.store.url import without_password
from clepsydra.tools import options
from clepsydra.tools.exits import Exit
from clepsydra.tools.logs import configure_logs
from clepsydra.tools.ports import shared_address
from clepsydra.tools.process import run_process
from clepsydra.tools.serving import run_scheduler
from clepsydra.tools.settings import Settings
from clepsydra.tools.several import Children, Parent
from clepsydra.tools.stores import opened_for_writing


@click.command(
    "scheduler",
    epilog="""\b
Examples:
  clepsydra scheduler --store sqlite:///clepsydra.db
  clepsydra scheduler --listen 0.0.0.0:7070 --set scheduler.tls_cert_file=tls.crt --set scheduler.tls_key_file=tls.key

  clepsydra scheduler --processes 2

Any number of schedulers may serve one store. gRPC health and reflection are served too.""",
)
@options.store
@options.listen
@options.scheduler_processes
@options.child_of
@options.log_flags
@options.reads_settings
def scheduler_command(settings: Settings, child_of: int | None) -> int:
    """Serve the gRPC API on a store that `clepsydra init` has made."""
    log = configure_logs(settings.log)
    if child_of is None and settings.scheduler.processes > 1:
        return _run_several(settings, log)
    parent = None if child_of is None else Parent(child_of)

    def ready(address: str) -> None:
        if parent is None:
            _announce(settings, address)
        else:
            parent.say_ready()

    async def serve(stop: asyncio.Event) -> None:
        if parent is not None:
            parent.watch(stop)
        async with opened_for_writing(settings.store) as store:
            await run_scheduler(store, settings, stop, ready, log, share_port=parent is not None)

    run_process(serve, log)
    return Exit.OK


def _run_several(settings: Settings, log: FilteringBoundLogger) -> int:
    """The same command for each; the system spreads connections over them."""
    with shared_address(settings.scheduler.listen) as address:
        command = [*sys.argv[1:], f"--listen={address}"]
        children = Children(settings.scheduler.processes, lambda _number: command, log)
        return run_process(lambda stop: children.run(stop, lambda: _announce(settings, address)), log, children.kill)


def _announce(settings: Settings, address: str) -> None:
    click.echo(f"The scheduler listens on {address}, its store is {without_password(settings.store)}.")
    sys.stdout.flush()
