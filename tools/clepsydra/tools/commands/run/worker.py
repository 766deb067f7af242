"""`clepsydra worker`: executes the actions of a store."""

import asyncio
import math
import sys

import click
from structlog.typing import FilteringBoundLogger

from clepsydra.core.ids import Ids
from clepsydra.tools.exits import Exit
from clepsydra.tools.process.logs import configure_logs
from clepsydra.tools.process.parts import load_handlers, run_worker
from clepsydra.tools.process.server import run_server
from clepsydra.tools.process.supervisor import Supervisor, SupervisorLink
from clepsydra.tools.settings import flags
from clepsydra.tools.settings.model import Settings, WorkerProcessSettings
from clepsydra.tools.stores import writable_store


@click.command(
    "worker",
    epilog="""\b
Examples:
  clepsydra worker --store sqlite:///clepsydra.db
  clepsydra worker --handlers app.handlers --name billing-1
  clepsydra worker --set worker.attempts=200 --set worker.drain_ms=60000
  clepsydra worker --processes 4

Any number of workers can share one store. SIGINT and SIGTERM stop it gracefully: it finishes its attempts within
worker.drain_ms, and releases its locks. A second signal ends it at once.""",
)
@flags.store
@flags.handlers
@flags.name
@flags.worker_processes
@flags.child_of
@flags.log_flags
@flags.with_settings
def worker_command(settings: Settings, child_of: int | None) -> int:
    """Execute the actions of a store when they come due.

    --handlers names a module that registers Python handlers, as an import statement names it.
    """
    log = configure_logs(settings.log)
    if child_of is None and settings.worker.processes > 1:
        return _supervise(settings.worker, log)
    load_handlers(settings.worker, log)
    link = None if child_of is None else SupervisorLink(child_of)

    async def serve(stop: asyncio.Event) -> None:
        async with writable_store(settings.store) as store:
            if link is not None:
                link.stop_without_supervisor(stop)
                link.report_ready()
            await run_worker(store, settings.worker, stop, log)

    run_server(serve, log)
    return Exit.OK


def _supervise(settings: WorkerProcessSettings, log: FilteringBoundLogger) -> int:
    """Run child processes, each with an equal share of the loops."""
    count = settings.processes

    def command(number: int) -> list[str]:
        loops = [f"--set=worker.loops={math.ceil(settings.loops / count)}"]
        name = [f"--name={settings.name}-{number}"] if settings.name else []
        return [*sys.argv[1:], *loops, *name]

    supervisor = Supervisor(count, command, Ids.from_system(), log)
    return run_server(lambda stop: supervisor.run(stop, lambda: None), log, supervisor.kill)
