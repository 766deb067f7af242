"""`clepsydra worker`: executes the actions of a store."""

import asyncio

import click

from clepsydra.tools import options
from clepsydra.tools.logs import configure_logs
from clepsydra.tools.process import run_process
from clepsydra.tools.serving import load_handlers, run_worker
from clepsydra.tools.settings import Settings
from clepsydra.tools.stores import opened_for_writing


@click.command(
    "worker",
    epilog="""\b
Examples:
  clepsydra worker --store sqlite:///clepsydra.db
  clepsydra worker --handlers app.handlers --name billing-1
  clepsydra worker --set worker.attempts=200 --set worker.drain_ms=60000

Any number of workers may share one store. SIGINT and SIGTERM drain it: what runs is finished within worker.drain_ms,
locks are released. A second signal ends it at once.""",
)
@options.store
@options.handlers
@options.name
@options.log_flags
@options.reads_settings
def worker_command(settings: Settings) -> None:
    """Execute the actions of a store when they come due.

    Python handlers are found in the module that --handlers names, as in an import statement.
    """
    log = configure_logs(settings.log)
    load_handlers(settings.worker, log)

    async def serve(stop: asyncio.Event) -> None:
        async with opened_for_writing(settings.store) as store:
            await run_worker(store, settings.worker, stop, log)

    run_process(serve, log)
