"""One way in for everything that a worker can execute."""

import traceback
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.v1.action_pb2 import PythonHandler, Spec
from clepsydra.worker.context import Context, Known, Told
from clepsydra.worker.handling import BatchHandler, Registry
from clepsydra.worker.result import Result, described, failure
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets.batches import BatchTarget
from clepsydra.worker.targets.functions import Functions
from clepsydra.worker.targets.handlers import HandlerTarget
from clepsydra.worker.targets.http import HttpTarget
from clepsydra.worker.targets.log import write_line
from clepsydra.worker.targets.threads import Threads


class Targets:
    """Executes what a spec asks for. The caller enforces the deadline, by cancelling."""

    def __init__(self, settings: WorkerSettings, registry: Registry, log: FilteringBoundLogger) -> None:
        self._settings = settings
        self._registry = registry
        self._log = log
        self._opened = AsyncExitStack()

    async def start(self) -> None:
        threads = Threads(self._settings.handler_threads)
        self._opened.callback(threads.close)
        functions = Functions(threads, self._log)
        self._handlers = HandlerTarget(self._registry, functions)
        self._batches = BatchTarget(functions)
        self._http = HttpTarget(self._settings)
        self._opened.push_async_callback(self._http.close)

    async def close(self) -> None:
        """Close what was opened. Threads whose handlers never return are left behind; they are daemons."""
        await self._opened.aclose()

    def batch_handler(self, request: PythonHandler) -> BatchHandler | None:
        """The handler that executes the request together with others, if it is one that takes many."""
        handlers = self._registry.batch_handlers
        return handlers.get(request.name) if handlers else None

    async def execute_together(
        self, handler: BatchHandler, requests: Sequence[PythonHandler], told: Sequence[Told]
    ) -> list[Result]:
        """Execute many once, and tell of each how it ended. Raises nothing but CancelledError, as `execute`."""
        try:
            return await self._batches.execute(handler, requests, told)
        except Exception as error:
            return [_defect(error)] * len(told)

    def handle(self, request: PythonHandler, told: Told) -> Coroutine[Any, Any, Result]:
        """Have a handler executed once. Raises nothing but CancelledError: whatever a handler does is in the result."""
        return self._handlers.execute(request, told)

    async def execute(self, spec: Spec, context: Context) -> Result:
        """Execute once. Raises nothing but CancelledError: what goes wrong is in the result."""
        kind = spec.WhichOneof("target")
        try:
            if kind == "handler":
                return await self.handle(spec.handler, Known(context))
            if kind == "http":
                return await self._http.execute(spec.http, context)
            if kind == "log":
                return write_line(self._log, spec.log, context)
        except Exception as error:  # a defect here, or a log that cannot be written: told, and tried again
            return _defect(error)
        # Written by a newer scheduler: a newer worker will know it.
        return failure(f"worker {context.worker} does not know this kind of target: upgrade it")


def _defect(error: Exception) -> Result:
    return failure(f"the worker failed to execute the action: {described(error)} ({_where(error)})")


def _where(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
