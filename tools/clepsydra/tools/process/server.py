"""A server process: it runs until a signal asks it to stop, and then finishes what it has begun.

A second signal ends it at once. That is safe, because a crash loses nothing either.
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

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _do_nothing() -> None: ...


def run_server(
    serve: Callable[[asyncio.Event], Awaitable[T]],
    log: FilteringBoundLogger,
    before_exit: Callable[[], None] = _do_nothing,
) -> T:
    """Run `serve`, which must return soon after the event is set.

    A second signal calls `before_exit` and ends the process.
    """

    async def process() -> T:
        stop = asyncio.Event()

        def ask_to_stop(signum: signal.Signals) -> None:
            log.info("stopping: running work is finished first; a second signal ends at once", signal=signum.name)
            stop.set()

        with stop_signals(ask_to_stop, before_exit):
            try:
                return await serve(stop)
            except (StoreError, Failure):
                raise
            except Exception:
                log.exception("a defect of Clepsydra ends the process")
                raise

    _tune_interpreter()
    _raise_open_file_limit(log)
    return uvloop.run(process())


def _tune_interpreter() -> None:
    """Tune Python for a server whose store works in threads.

    A thread that returns from the database waits up to one switch interval for the interpreter, several times in each
    transaction; the default is 5 ms. A server makes many objects that live for milliseconds: without the freeze and
    with the default thresholds, the garbage collector would examine all loaded modules again and again.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _raise_open_file_limit(log: FilteringBoundLogger) -> None:
    """Raise the soft limit of open files to the hard limit; each connection is a file.

    Shells and containers often set the soft limit to 1,024, for old programs that cannot use more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError) as error:
        # Some systems enforce a lower limit than the hard limit that they report.
        log.warning("the limit of open files cannot be raised", files=soft, error=str(error))


async def run_parts(stop: asyncio.Event, *parts: Awaitable[None]) -> None:
    """Run the parts of one process until all have ended. When one ends or fails, the others stop as by a signal."""
    running = [asyncio.ensure_future(part) for part in parts]
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    # All results are looked at, so that the errors behind the first are not reported as forgotten.
    for result in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


@contextmanager
def stop_signals(
    ask_to_stop: Callable[[signal.Signals], None], before_exit: Callable[[], None] = _do_nothing
) -> Iterator[None]:
    """While this is open, the first SIGINT or SIGTERM calls `ask_to_stop`, and the next one ends the process."""
    loop = asyncio.get_running_loop()

    def end_process(signum: int, _frame: FrameType | None) -> None:
        before_exit()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signum)

    def receive(signum: signal.Signals) -> None:
        for each in _STOP_SIGNALS:
            loop.remove_signal_handler(each)
            # A plain handler: the event loop may hang.
            signal.signal(each, end_process)
        ask_to_stop(signum)

    for each in _STOP_SIGNALS:
        loop.add_signal_handler(each, receive, each)
    try:
        yield
    finally:
        for each in _STOP_SIGNALS:
            loop.remove_signal_handler(each)
