"""A fleet of real workers on one store, on virtual time: minutes pass in milliseconds, and nothing sleeps."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog
from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.events import Accepted, Deleted, Event
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.core.ids import Ids
from clepsydra.core.limits import DELETED_RETENTION_DEFAULT_US
from clepsydra.core.times import MINUTE_US, timestamp
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Put, PutOutcome, Store
from clepsydra.v1.action_pb2 import Meta, PythonHandler, Schedule, Spec, Status
from clepsydra.worker.handlers.registry import Registry
from clepsydra.worker.running import Context
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker
from tests.simulation import loop as virtual
from tests.unit.specs import filled_in

T = TypeVar("T")
SILENT = structlog.wrap_logger(structlog.PrintLogger(), wrapper_class=structlog.make_filtering_bound_logger(50))


class Severed:
    """A worker's way to its store; cut off, every call hangs for ever, as after kill -9."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if not inspect.iscoroutinefunction(value):
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_cut:
                await asyncio.get_running_loop().create_future()
            result = await value(*args, **kwargs)
            if self.is_cut:
                await asyncio.get_running_loop().create_future()
            return result

        return call


class Member:
    """One worker of the fleet."""

    def __init__(self, worker: Worker, store: Severed) -> None:
        self.worker = worker
        self.tally = worker.tally
        self._store = store
        self.task = asyncio.ensure_future(worker.run())

    def kill(self) -> None:
        """From now on nothing that it does reaches the store; handlers that run are forgotten by the test."""
        self._store.is_cut = True

    @property
    def is_dead(self) -> bool:
        return self._store.is_cut

    async def stop(self) -> None:
        self.worker.stop()
        await self.task


class Fleet:
    def __init__(self, shards: int = 4, seed: int = 1) -> None:
        self.clock = virtual.VirtualClock(asyncio.get_running_loop())
        self.store = MemoryStore(shards, self.clock)
        self.ids = Ids(random.Random(seed))
        self.registry = Registry()
        self.members: list[Member] = []
        # Every start of an execution, as (action id, attempt number, when).
        self.started: list[tuple[str, int, int]] = []
        self.registry.handler("noop")(self._noop)

    async def _noop(self, context: Context) -> None:
        self.note(context)

    def note(self, context: Context) -> None:
        self.started.append((context.action_id, context.attempt_number, self.clock.now_us()))

    def handler(self, name: str, function: Callable[[Context], Awaitable[None]]) -> None:
        """Register an async handler; its start is noted."""

        async def noted(context: Context) -> None:
            self.note(context)
            await function(context)

        self.registry.handler(name)(noted)

    def add_worker(self, store: Store | None = None, log: FilteringBoundLogger = SILENT, **settings: Any) -> Member:
        chosen = WorkerSettings(**settings)
        severed = Severed(store or self.store)
        name = f"worker-{len(self.members)}"
        targets = Targets(chosen, self.registry, SILENT)
        member = Member(Worker(severed, targets, self.clock, self.ids, chosen, name, log), severed)
        self.members.append(member)
        return member

    async def create(self, action_id: str, *, delay_us: int = 0, handler: str = "noop", **spec: Any) -> Action:
        now_us = self.clock.now_us()
        schedule = spec.pop("schedule", Schedule())
        schedule.start_time.CopyFrom(timestamp(now_us + delay_us))
        wanted = Spec(schedule=schedule, handler=PythonHandler(name=handler), **spec)
        return await self.change(action_id, filled_in(wanted, now_us), Accepted())

    async def delete(self, action_id: str) -> Action:
        [seen] = await self.store.get([action_id])
        assert seen is not None
        return await self.change(action_id, Spec.FromString(seen.spec), Deleted(DELETED_RETENTION_DEFAULT_US))

    async def change(self, action_id: str, spec: Spec, event: Event) -> Action:
        """A change by a user, as the scheduler writes it."""
        now_us = self.clock.now_us()
        [seen] = await self.store.get([action_id])
        status = Status() if seen is None else Status.FromString(seen.status)
        after = step(spec, status, event, Moment(now_us))
        assert after.at_us is not None
        guid = self.ids.guid()
        action = Action(
            action_id,
            guid,
            Meta(id=action_id, guid=guid).SerializeToString(),
            spec.SerializeToString(),
            after.status.SerializeToString(),
            after.at_us,
        )
        [result] = await self.store.put([Put(seen, action, self.ids.shard(self.store.shards), now_us)])
        assert result.outcome is PutOutcome.DONE
        return action

    async def status(self, action_id: str) -> Status:
        [action] = await self.store.get([action_id])
        assert action is not None, f"{action_id} is not there"
        return Status.FromString(action.status)

    async def until(self, condition: Callable[[], bool], within_us: int = 10 * MINUTE_US) -> None:
        """Let virtual time pass until the condition holds; look a thousand times at most, and every ms at first."""
        deadline_us, step_s = self.clock.now_us() + within_us, 0.001
        while not condition():
            assert self.clock.now_us() < deadline_us, "it did not happen in time"
            await asyncio.sleep(step_s)
            step_s = min(step_s * 1.01, within_us / 1e9)

    def starts_of(self, action_id: str) -> list[int]:
        return [at_us for started_id, _, at_us in self.started if started_id == action_id]

    async def assert_sound(self) -> None:
        audit = await self.store.audit(10)
        assert not audit.without_row, audit
        assert not audit.with_several_rows, audit


def on_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on virtual time."""

    def run(*args: Any, **kwargs: Any) -> None:
        virtual.run(test(*args, **kwargs))

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    run.__module__ = test.__module__
    return run
