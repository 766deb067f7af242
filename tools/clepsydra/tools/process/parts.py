"""The parts of a server process: a scheduler on a store, and a worker on a store. Each runs until `stop` is set."""

import asyncio
import os
import socket
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import DisciplinedClock, SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Store
from clepsydra.store.store_clock import read_store_clock
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.settings.model import Settings, WorkerProcessSettings

# The clock of a machine drifts by a few milliseconds an hour, so this is often enough.
_ANCHOR_INTERVAL_S = 10.0


async def run_scheduler(
    store: Store,
    settings: Settings,
    stop: asyncio.Event,
    when_ready: Callable[[str], None],
    log: FilteringBoundLogger,
    *,
    share_port: bool = False,
) -> None:
    """Serve the API. `when_ready` receives the address, with the port that was chosen if the settings say 0."""
    from clepsydra.scheduler.api.listening import CannotListen
    from clepsydra.scheduler.api.server import serve
    from clepsydra.scheduler.service import Scheduler

    clock = DisciplinedClock(SystemClock())
    await read_store_clock(store, clock)
    scheduler = Scheduler(store, clock, Ids.from_system(), settings.scheduler)
    try:
        server = await serve(scheduler, settings.scheduler, share_port=share_port)
    except CannotListen as error:
        raise Failure(str(error), Exit.UNAVAILABLE) from error
    anchoring = asyncio.ensure_future(_anchor_clock(store, clock, log))
    stopping, lost = asyncio.ensure_future(stop.wait()), asyncio.ensure_future(scheduler.store_lost())
    log.info("the scheduler has started", address=server.address, shards=store.shards)
    when_ready(server.address)
    try:
        await asyncio.wait([stopping, lost], return_when=asyncio.FIRST_COMPLETED)
        if lost.done():
            raise lost.result()
    finally:
        for task in (anchoring, stopping, lost):
            task.cancel()
        await server.stop(settings.scheduler.stop_grace_ms / 1000)
        log.info("the scheduler has stopped")


def check_listen(settings: Settings) -> None:
    """Fail now, with the reason, if the scheduler's address cannot be listened on: before anything else is done."""
    from clepsydra.scheduler.api.listening import CannotListen, check_address

    try:
        check_address(settings.scheduler.listen)
    except CannotListen as error:
        raise Failure(str(error), Exit.UNAVAILABLE) from error


async def run_worker(
    store: Store, settings: WorkerProcessSettings, stop: asyncio.Event, log: FilteringBoundLogger
) -> None:
    """Execute the actions of the store."""
    from clepsydra.worker.attempts.users_loop import ThreadLoop
    from clepsydra.worker.handlers.registry import registered_handlers
    from clepsydra.worker.targets import Targets
    from clepsydra.worker.worker import Worker

    name = settings.name or f"{socket.gethostname()}:{os.getpid()}"
    targets = Targets(settings, registered_handlers, log)
    # Users' coroutines have a loop of the same kind as the process, so that one that blocks stops nothing else.
    users = ThreadLoop(type(asyncio.get_running_loop()), log)
    worker = Worker(store, targets, SystemClock(), Ids.from_system(), settings, name, log, users)
    stopping = asyncio.ensure_future(_call_when_set(stop, worker.stop))
    try:
        await worker.run()
    finally:
        stopping.cancel()


def load_handlers(settings: WorkerProcessSettings, log: FilteringBoundLogger) -> None:
    """Import the module that registers the worker's handlers, if the settings name one."""
    from clepsydra.worker.handlers.loading import HandlersNotLoaded
    from clepsydra.worker.handlers.loading import load_handlers as load

    if settings.handlers is None:
        return
    try:
        registry = load(settings.handlers)
    except HandlersNotLoaded as error:
        raise Failure(str(error), Exit.USAGE) from error
    log.info("handlers are registered", module=settings.handlers, handlers=registry.names())


async def _call_when_set(event: asyncio.Event, function: Callable[[], None]) -> None:
    await event.wait()
    function()


async def _anchor_clock(store: Store, clock: DisciplinedClock, log: FilteringBoundLogger) -> None:
    """Keep the scheduler's clock close to the store's clock. A worker's heartbeats do the same for the worker."""
    while True:
        await asyncio.sleep(_ANCHOR_INTERVAL_S)
        try:
            await read_store_clock(store, clock)
        except (Unavailable, OutcomeUnknown) as error:
            log.warning("the store's clock could not be read", error=str(error))
