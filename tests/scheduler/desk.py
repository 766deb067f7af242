"""A scheduler at a desk of its own: a real memory store, virtual time, and a line to the store that can fail."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, TypeVar

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.core.times import SECOND_US, duration
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.errors import OutcomeUnknown, Unavailable, Unusable
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Action, Put, PutResult
from clepsydra.v1.action_pb2 import LogLine, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest, DeleteActionRequest, GetActionRequest
from tests.simulation import loop as virtual

Result = TypeVar("Result")


class Trouble(Enum):
    """How a call to the store goes wrong."""

    UNAVAILABLE = "nothing was done, and the caller knows"
    LOST_ON_THE_WAY = "nothing was done, and the caller cannot tell"
    LOST_ON_THE_WAY_BACK = "it was done, and the caller cannot tell"
    UNUSABLE = "nothing will ever be done"


class LineToStore(MemoryStore):
    """The memory store at the end of a line: it counts what comes, can be held up, and can fail."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(4, clock)
        self.puts: list[Put] = []
        self.batches: list[list[str]] = []
        self.looks: list[list[str]] = []
        # In the order of the calls; None is none.
        self.troubles: deque[Trouble | None] = deque()
        self.look_troubles: deque[Trouble] = deque()
        self.list_troubles: deque[Trouble] = deque()
        # What happens in the store between a scheduler's look and its write.
        self.meanwhile: deque[Callable[[], Awaitable[object]]] = deque()
        self.held_up: asyncio.Event | None = None
        self.under_way = 0
        self.most_under_way = 0

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        self.puts.extend(puts)
        self.batches.append([put.action.action_id for put in puts])
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            if self.held_up is not None:
                await self.held_up.wait()
            if self.meanwhile:
                await self.meanwhile.popleft()()
            return await _troubled(self.troubles, lambda: MemoryStore.put(self, puts))
        finally:
            self.under_way -= 1

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        self.looks.append(list(action_ids))
        return await _troubled(self.look_troubles, lambda: MemoryStore.get(self, action_ids))

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await _troubled(self.list_troubles, lambda: MemoryStore.list_actions(self, after_id, limit))


async def _troubled(troubles: deque[Any], call: Callable[[], Awaitable[Result]]) -> Result:
    trouble = troubles.popleft() if troubles else None
    if trouble is Trouble.UNAVAILABLE:
        raise Unavailable("the line is down")
    if trouble is Trouble.UNUSABLE:
        raise Unusable("the schema is too new")
    if trouble is Trouble.LOST_ON_THE_WAY:
        raise OutcomeUnknown("the line broke")
    result = await call()
    if trouble is Trouble.LOST_ON_THE_WAY_BACK:
        raise OutcomeUnknown("the line broke")
    return result


class Desk:
    def __init__(self, **settings: Any) -> None:
        self.clock = virtual.VirtualClock(asyncio.get_running_loop())
        self.store = LineToStore(self.clock)
        self.settings = SchedulerSettings(**settings)
        self.ids = Ids(random.Random(7))
        self.scheduler = Scheduler(self.store, self.clock, self.ids, self.settings)

    def another_scheduler(self) -> Scheduler:
        """A scheduler of another process, on the same store."""
        return Scheduler(self.store, self.clock, self.ids, self.settings)

    async def create(self, action_id: str = "a", **fields: Any) -> ScheduledAction:
        return await self.scheduler.create(a_create(action_id, **fields))

    async def get(self, action_id: str = "a") -> ScheduledAction:
        return await self.scheduler.get(GetActionRequest(id=action_id))

    async def delete(self, action_id: str = "a", **fields: Any) -> None:
        await self.scheduler.delete(DeleteActionRequest(id=action_id, **fields))

    async def check_invariant(self) -> None:
        """Every action has exactly one live row."""
        audit = await self.store.audit(10)
        assert not audit.violations

    def live_row_times(self, action_id: str = "a") -> list[int]:
        guid = self.store.actions[action_id].guid
        return [row.scheduled_at_us for key, row in self.store.rows.items() if key[3:] == (action_id, guid)]


def a_spec(delay_s: int = 60) -> Spec:
    return Spec(schedule=Schedule(delay=duration(delay_s * SECOND_US)), log=LogLine(message="ping"))


def a_create(action_id: str = "a", *, spec: Spec | None = None, **fields: Any) -> CreateActionRequest:
    request = CreateActionRequest(**fields)
    request.action.meta.id = action_id
    request.action.spec.CopyFrom(spec or a_spec())
    return request


Story = Callable[[Desk], Coroutine[Any, Any, None]]


def at_a_desk(**settings: Any) -> Callable[[Story], Callable[[], None]]:
    """Makes a test of a story: on virtual time, at a desk with these settings."""

    def tell(told: Story) -> Callable[[], None]:
        async def begin() -> None:
            desk = Desk(**settings)
            await told(desk)
            await desk.scheduler.close()
            await desk.check_invariant()

        def test() -> None:
            virtual.run(begin())

        test.__name__, test.__doc__, test.__module__ = told.__name__, told.__doc__, told.__module__
        return test

    return tell


story = at_a_desk()


async def settled() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)
