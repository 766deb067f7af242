"""`clepsydra worker`: executes the actions of a store."""

import asyncio
import math
import sys

import click
from structlog.typing import FilteringBoundLogger

from clepsydra.tools import options
from clepsydra.tools.exits import Exit
from clepsydra.tools.logs import configure_logs
from clepsydra.tools.process import run_process
from clepsydra.tools.serving import load_handlers, run_worker
from clepsydra.tools.settings import NamedWorkerSettings, Settings
from clepsydra.tools.several import Children, Parent
from clepsydra.tools.stores import opened_for_writing


@click.command(
    "worker",
    epilog="""\b
Examples:
  clepsydra worker --store sqlite:///clepsydra.db
  clepsydra worker --handlers app.handlers --name billing-1
  clepsydra worker --set worker.attempts=200 --set worker.drain_ms=60000

  clepsydra worker --processes 4

Any number of workers may share one store. SIGINT and SIGTERM drain it: what runs is finished within worker.drain_ms,
locks are released. A second signal ends it at once.""",
)
@options.store
@options.handlers
@options.name
@options.worker_processes
@options.child_of
@options.log_flags
@options.reads_settings
def worker_command(settings: Settings, child_of: int | None) -> int:
    """Execute the actions of a store when they come due.

    Python handlers are found in the module that --handlers names, as in an import statement.
    """
    log = configure_logs(settings.log)
    if child_of is None and settings.worker.processes > 1:
        return _run_several(settings.worker, log)
    load_handlers(settings.worker, log)
    parent = None if child_of is None else Parent(child_of)

    async def serve(stop: asyncio.Event) -> None:
        async with opened_for_writing(settings.store) as store:
            if parent is not None:
                parent.watch(stop)
                parent.say_ready()
            await run_worker(store, settings.worker, stop, log)

    run_process(serve, log)
    return Exit.OK


def _run_several(settings: NamedWorkerSettings, log: FilteringBoundLogger) -> int:
    """The same command for each, with its share of the loops."""
    count = settings.processes

    def command(number: int) -> list[str]:
        loops = [f"--set=worker.loops={math.ceil(settings.loops / count)}"]
        name = [f"--name={settings.name}-{number}"] if settings.name else []
        return [*sys.argv[1:], *loops, *name]

    children = Children(count, command, log)
    return run_process(lambda stop: children.run(stop, lambda: None), log, children.kill)
