"""What a worker executes: one module for each target kind, under the name of the kind's field in a spec.

A module has a class `Executor`, which is made from `Resources` inside the event loop when the worker starts:

    is_eager                                              whether an execution may end without waiting
    def needs(self, target) -> Needs                      what a call needs to run
    async def execute(self, group) -> Sequence[Result]    executes a group by one call; a result for each attempt
    async def close(self) -> None

A group has one attempt, except where a handler takes many payloads at once.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.targets import KINDS
from clepsydra.worker.capacity import Capacity, Needs
from clepsydra.worker.handlers.registry import BatchHandler, Registry
from clepsydra.worker.running import Group, RunningAttempt
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally


class Resources(NamedTuple):
    """What executors are made from."""

    settings: WorkerSettings
    registry: Registry
    log: FilteringBoundLogger
    capacity: Capacity
    tally: Tally


class Executor(Protocol):
    # Whether an execution may end without waiting for anything, and so need no task of its own.
    is_eager: bool

    def needs(self, target: Any) -> Needs:
        """What a call of this target needs to run: always the same for the same target."""
        ...

    async def execute(self, group: Group) -> Sequence[Result]:
        """Execute the attempts of a group once. The pool cancels this at the attempts' deadline."""
        ...

    async def close(self) -> None: ...


class Targets:
    def __init__(self, settings: WorkerSettings, registry: Registry, log: FilteringBoundLogger) -> None:
        self.capacity = Capacity(settings.attempts)
        self.tally = Tally()
        self._resources = Resources(settings, registry, log, self.capacity, self.tally)
        self._batch_handlers = registry.batch_handlers
        self._coroutines = registry.coroutines
        # By the name of the kind, from `start` on.
        self.executors: dict[str, Executor] = {}

    async def start(self) -> None:
        for kind in KINDS:
            module = import_module(f"{__name__}.{kind}")
            self.executors[kind] = module.Executor(self._resources)

    async def close(self) -> None:
        """Threads whose handlers never return are left behind; they are daemons."""
        for executor in self.executors.values():
            await executor.close()
        self.executors.clear()

    def is_users_coroutine(self, attempt: Attempt) -> bool:
        """Whether it is executed by a coroutine that users have registered."""
        return attempt.kind == "handler" and attempt.target.name in self._coroutines

    def groups(self, attempts: Sequence[RunningAttempt]) -> Sequence[Group]:
        """The attempts in groups, each of which is executed by one call."""
        if not self._batch_handlers:
            return [(running,) for running in attempts]
        return list(self._grouped(attempts))

    def _grouped(self, attempts: Sequence[RunningAttempt]) -> Iterator[Group]:
        together: dict[BatchHandler, list[RunningAttempt]] = {}
        for running in attempts:
            attempt = running.attempt
            handler = self._batch_handlers.get(attempt.target.name) if attempt.kind == "handler" else None
            if handler is None:
                yield (running,)
            else:
                together.setdefault(handler, []).append(running)
        for handler, group in together.items():
            for start in range(0, len(group), handler.batch):
                yield group[start : start + handler.batch]
