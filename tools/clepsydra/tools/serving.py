"""The parts of a server process: a scheduler on a store, and a worker on a store, until they are told to stop."""

import asyncio
import os
import socket
from collections.abc import Callable

from structlog.typing import FilteringBoundLogger

from clepsydra.core.clock import DisciplinedClock, SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import Store
from clepsydra.tools.exits import Exit, Failure
from clepsydra.tools.settings import NamedWorkerSettings, Settings

# A machine's clock strays by a few milliseconds an hour, so this is often enough.
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
    from clepsydra.scheduler.api.server import CannotListen, serve
    from clepsydra.scheduler.service import Scheduler

    clock = DisciplinedClock(SystemClock())
    clock.anchor(await store.now())
    scheduler = Scheduler(store, clock, Ids.from_system(), settings.scheduler)
    try:
        server = await serve(scheduler, settings.scheduler, share_port=share_port)
    except CannotListen as error:
        raise Failure(str(error), Exit.UNAVAILABLE) from error
    following = asyncio.ensure_future(_follow_store(store, clock, log))
    log.info("the scheduler has started", address=server.address, shards=store.shards)
    when_ready(server.address)
    try:
        await stop.wait()
    finally:
        following.cancel()
        await server.stop(settings.scheduler.stop_grace_ms / 1000)
        log.info("the scheduler has stopped")


async def run_worker(
    store: Store, settings: NamedWorkerSettings, stop: asyncio.Event, log: FilteringBoundLogger
) -> None:
    from clepsydra.worker.handlers.registry import registered_handlers
    from clepsydra.worker.targets import Targets
    from clepsydra.worker.worker import Worker

    name = settings.name or f"{socket.gethostname()}:{os.getpid()}"
    targets = Targets(settings, registered_handlers, log)
    worker = Worker(store, targets, SystemClock(), Ids.from_system(), settings, name, log)
    stopping = asyncio.ensure_future(_then(stop, worker.stop))
    try:
        await worker.run()
    finally:
        stopping.cancel()


def load_handlers(settings: NamedWorkerSettings, log: FilteringBoundLogger) -> None:
    """Import the module that registers the worker's handlers, if one is named."""
    from clepsydra.worker.handlers.loading import HandlersNotLoaded
    from clepsydra.worker.handlers.loading import load_handlers as load

    if settings.handlers is None:
        return
    try:
        registry = load(settings.handlers)
    except HandlersNotLoaded as error:
        raise Failure(str(error), Exit.USAGE) from error
    log.info("handlers are registered", module=settings.handlers, handlers=registry.names())


async def _then(stop: asyncio.Event, action: Callable[[], None]) -> None:
    await stop.wait()
    action()


async def _follow_store(store: Store, clock: DisciplinedClock, log: FilteringBoundLogger) -> None:
    """Keep the scheduler's time the store's time, as heartbeats do for a worker."""
    while True:
        await asyncio.sleep(_ANCHOR_INTERVAL_S)
        try:
            clock.anchor(await store.now())
        except (Unavailable, OutcomeUnknown) as error:
            log.warning("the store's clock could not be read", error=str(error))
