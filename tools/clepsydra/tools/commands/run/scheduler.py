"""`clepsydra scheduler`: serves the gRPC API on a store."""

import asyncio
import sys

import click
from structlog.typing import FilteringBoundLogger

from clepsydra.core.ids import Ids
from clepsydra.store.url_options import without_password
from clepsydra.tools.exits import Exit
from clepsydra.tools.process.logs import configure_logs
from clepsydra.tools.process.parts import run_scheduler
from clepsydra.tools.process.ports import shared_address
from clepsydra.tools.process.server import run_server
from clepsydra.tools.process.supervisor import Supervisor, SupervisorLink
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings
from clepsydra.tools.stores import writable_store


@click.command(
    "scheduler",
    epilog="""\b
Examples:
  clepsydra scheduler --store sqlite:///clepsydra.db
  clepsydra scheduler --listen 0.0.0.0:7070 --set scheduler.tls_cert_file=tls.crt --set scheduler.tls_key_file=tls.key
  clepsydra scheduler --processes 2

Any number of schedulers can serve one store. They also serve gRPC health checks and reflection.""",
)
@flags.store
@flags.listen
@flags.scheduler_processes
@flags.child_of
@flags.log_flags
@flags.with_settings
def scheduler_command(settings: Settings, child_of: int | None) -> int:
    """Serve the gRPC API on a store that `clepsydra init` has made."""
    log = configure_logs(settings.log)
    if child_of is None and settings.scheduler.processes > 1:
        return _supervise(settings, log)
    link = None if child_of is None else SupervisorLink(child_of)

    def when_ready(address: str) -> None:
        if link is None:
            _announce(settings, address)
        else:
            link.report_ready()

    async def serve(stop: asyncio.Event) -> None:
        if link is not None:
            link.stop_without_supervisor(stop)
        async with writable_store(settings.store) as store:
            await run_scheduler(store, settings, stop, when_ready, log, share_port=link is not None)

    run_server(serve, log)
    return Exit.OK


def _supervise(settings: Settings, log: FilteringBoundLogger) -> int:
    """Run child processes that listen on one address; the system distributes connections among them."""
    with shared_address(settings.scheduler.listen) as address:
        command = [*sys.argv[1:], f"--listen={address}"]
        supervisor = Supervisor(settings.scheduler.processes, lambda _number: command, Ids.from_system(), log)
        return run_server(lambda stop: supervisor.run(stop, lambda: _announce(settings, address)), log, supervisor.kill)


def _announce(settings: Settings, address: str) -> None:
    click.echo(f"The scheduler listens on {address}, its store is {without_password(settings.store)}.")
    sys.stdout.flush()
