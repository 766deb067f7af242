"""One handler of each kind that harms its worker, and one that does not."""

import asyncio
import builtins
import os
import time
from collections.abc import Iterator

from pydantic import BaseModel

from clepsydra.worker import Context, handler

# Where a worker's handlers note the deaths that they cause.
VARIABLE = "CHAOS_DEATHS"

_ARGUMENTS: dict[str, tuple[object, ...]] = {
    "BaseExceptionGroup": ("several", [GeneratorExit()]),
    "ExceptionGroup": ("several", [ValueError()]),
    "UnicodeDecodeError": ("utf-8", b"\xff", 0, 1, "odd"),
    "UnicodeEncodeError": ("ascii", "é", 0, 1, "odd"),
    "UnicodeTranslateError": ("é", 0, 1, "odd"),
}
_ERRORS = [
    error(*_ARGUMENTS.get(error.__name__, ()))
    for error in vars(builtins).values()
    if isinstance(error, type) and issubclass(error, BaseException)
]


class Work(BaseModel):
    takes_ms: int = 0


@handler("innocent")
async def innocent(work: Work) -> None:
    await asyncio.sleep(work.takes_ms / 1000)


@handler("innocent-function")
def innocent_function(work: Work) -> None:
    time.sleep(work.takes_ms / 1000)


@handler("ends-the-process")
async def ends_the_process(context: Context) -> None:
    deaths = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(deaths, f"{context.action_id}\n".encode())
    os._exit(1)


@handler("blocks-the-loop")
async def blocks_the_loop(work: Work) -> None:
    time.sleep(work.takes_ms / 1000)  # noqa: ASYNC251 - what no handler should do


@handler("never-returns")
async def never_returns() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@handler("raises-everything")
async def raises_everything() -> None:
    raise next(_errors)


def _endlessly() -> Iterator[BaseException]:
    while True:
        yield from _ERRORS


_errors = _endlessly()
