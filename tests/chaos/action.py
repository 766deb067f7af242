"""One action in a world, as a test sees it: what is asked of the scheduler, what ran, and what the tables hold."""

from pathlib import Path
from typing import Any

from clepsydra.core.times import SECOND_US, duration, timestamp
from clepsydra.store.port import Stats
from clepsydra.v1.action_pb2 import PythonHandler, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest, DeleteActionRequest, GetActionRequest, UpdateActionRequest
from tests.chaos.caller import Answer, Caller
from tests.chaos.handlers import Work
from tests.chaos.history import Outcome
from tests.chaos.processes import Node
from tests.chaos.side_log import Event, Line, lines_in
from tests.chaos.tables import Entry, opened, read_entries
from tests.chaos.until import until
from tests.chaos.workload import work_for
from tests.chaos.world import World

HOLD_TIMEOUT_US = 3600 * SECOND_US


class Actor:
    """A client, and a pair of eyes."""

    def __init__(self, world: World, caller: Caller) -> None:
        self._world = world
        self._caller = caller

    async def create(self, action_id: str, handler: PythonHandler, due_us: int, request_id: str = "") -> Any:
        spec = Spec(attempt_timeout=duration(HOLD_TIMEOUT_US), handler=handler)
        spec.schedule.start_time.CopyFrom(timestamp(due_us))
        request = CreateActionRequest(action=ScheduledAction(meta={"id": action_id}, spec=spec), request_id=request_id)
        return await self._done("CreateAction", request)

    async def reschedule(self, action_id: str, due_us: int) -> Any:
        request = UpdateActionRequest()
        request.action.meta.id = action_id
        request.action.spec.schedule.start_time.CopyFrom(timestamp(due_us))
        request.update_mask.paths.append("spec.schedule")
        return await self._done("UpdateAction", request)

    async def delete(self, action_id: str) -> None:
        await self._done("DeleteAction", DeleteActionRequest(id=action_id))

    async def get(self, action_id: str) -> Answer:
        return await self._caller.try_once("GetAction", GetActionRequest(id=action_id))

    async def is_missing(self, action_id: str) -> bool:
        answer = await self.get(action_id)
        return answer.outcome is Outcome.REFUSED and answer.error.startswith("NOT_FOUND")

    def lines(self, event: Event) -> list[Line]:
        return [line for line in lines_in(self._world.side_log) if line.event is event]

    async def started(self, number: int) -> Line:
        """Wait for so many starts, and return the last."""
        await until(lambda: len(self.lines(Event.STARTED)) >= number, f"execution {number} starts")
        return self.lines(Event.STARTED)[number - 1]

    def worker_of(self, line: Line) -> Node:
        [node] = [node for node in self._world.workers if node.pid == line.pid]
        return node

    async def entries(self) -> dict[str, Entry]:
        async with opened(self._world.store.url) as store:
            return await read_entries(store)

    async def stats(self) -> Stats:
        async with opened(self._world.store.url) as store:
            return await store.stats(await store.now())

    async def _done(self, method: str, request: Any) -> Any:
        answer, _ = await self._caller.call(method, request)
        assert answer.outcome is Outcome.OK, answer.error
        return answer.response


def held(until_exists: Path) -> PythonHandler:
    """Work that goes on until a file is there."""
    return work_for("hold", Work(timeout_us=HOLD_TIMEOUT_US, until=str(until_exists)))


def quick() -> PythonHandler:
    return work_for("record", Work(timeout_us=HOLD_TIMEOUT_US))
