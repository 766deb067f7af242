"""A server process: it runs until a signal asks it to stop, and then finishes what it has begun.

A second signal ends it at once: nothing is lost by that, because nothing is ever lost by a crash.
"""

import asyncio
import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

import uvloop
from structlog.typing import FilteringBoundLogger

from clepsydra.store.errors import StoreError
from clepsydra.tools.exits import Failure

T = TypeVar("T")

_SWITCH_INTERVAL_S = 0.0002
_GC_THRESHOLDS = (50_000, 20, 100)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_process(
    serve: Callable[[asyncio.Event], Awaitable[T]],
    log: FilteringBoundLogger,
    at_once: Callable[[], None] = lambda: None,
) -> T:
    """Run a server, which shall return soon after the event is set; `at_once` is called if it has to end at once."""

    async def process() -> T:
        stop = asyncio.Event()

        def ask(signum: signal.Signals) -> None:
            log.info("stopping: what runs is finished first; a second signal ends at once", signal=signum.name)
            stop.set()

        with asked_by_signals(ask, at_once):
            try:
                return await serve(stop)
            except (StoreError, Failure):
                raise
            except Exception:
                log.exception("the process ends by a defect of Clepsydra")
                raise

    _suit_the_interpreter()
    _allow_many_connections(log)
    return uvloop.run(process())


def _suit_the_interpreter() -> None:
    """Set Python up for a server whose store works on threads of its own.

    A thread that comes back from the database waits for the interpreter for up to a switch interval, several times in
    each transaction: by default that is 5 ms. And a server makes many objects that live for some milliseconds: what
    was loaded at the start need not be looked through again and again to find that none of them is in a cycle.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _allow_many_connections(log: FilteringBoundLogger) -> None:
    """Open as many files as the system lets this process open; each connection is one.

    What a shell or a container sets, often 1,024, is meant for programs that cannot use more, and any may raise it.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ValueError, OSError) as error:
        # Some systems have another limit, below the one that they tell.
        log.warning("the limit of open files stays as it is", files=now, error=str(error))


async def run_parts(stop: asyncio.Event, *parts: Awaitable[None]) -> None:
    """Run the parts of one process until all have ended. When one fails, the others are stopped as by a signal."""
    running = [asyncio.ensure_future(part) for part in parts]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await asyncio.wait(running)
    for part in running:
        part.result()


@contextmanager
def asked_by_signals(
    ask: Callable[[signal.Signals], None], at_once: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Within, the first signal asks to stop, and the next one ends the process."""
    loop = asyncio.get_running_loop()

    def end_at_once(signum: int, _frame: FrameType | None) -> None:
        at_once()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signum)

    def came(signum: signal.Signals) -> None:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
            # Not through the event loop: it may be what hangs.
            signal.signal(each, end_at_once)
        ask(signum)

    for each in _SIGNALS:
        loop.add_signal_handler(each, came, each)
    try:
        yield
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
