"""What is read from the queues for users: whether an attempt runs now, and why an action runs, waits or does not run.

An action whose time has not come is not running, so nothing is read for it. For all others of a page one call of the
store reads the actions once more, with their live rows, in one snapshot.
"""

from collections.abc import Sequence

from clepsydra.core.clock import Clock
from clepsydra.core.inspection.reasons import Answer, answer
from clepsydra.core.inspection.running import leased_until_us, may_be_running, running_attempt
from clepsydra.core.inspection.situation import Situation
from clepsydra.core.inspection.stages import stages
from clepsydra.core.limits import GRACE_MAX_US, LEASE_MAX_US
from clepsydra.core.tables import Inspected, Inspection, Row
from clepsydra.core.times import MINUTE_US, set_us
from clepsydra.scheduler.api.responses import as_shown
from clepsydra.scheduler.codec import decode, decode_keys
from clepsydra.scheduler.errors import Damaged, NotFound
from clepsydra.scheduler.writes.commands import SeenAttempt
from clepsydra.scheduler.writes.pipeline import WritePipeline
from clepsydra.store.port import Store
from clepsydra.v1.action_pb2 import Running, ScheduledAction
from clepsydra.v1.scheduler_pb2 import ExplainActionResponse

_AT_ONCE = 200


class Inspections:
    def __init__(self, store: Store, clock: Clock, pipeline: WritePipeline) -> None:
        self._store = store
        self._clock = clock
        self._pipeline = pipeline

    async def add_running(self, actions: Sequence[ScheduledAction]) -> None:
        """Say of each of these decoded actions whether an attempt runs; they are changed in place."""
        now_us = self._clock.now_us()
        candidates = [action for action in actions if may_be_running(action.status, now_us)]
        for start in range(0, len(candidates), _AT_ONCE):
            chosen = candidates[start : start + _AT_ONCE]
            inspection = await self._read(chosen, now_us)
            for action, inspected in zip(chosen, inspection.actions, strict=True):
                running = _running(inspected, inspection)
                if running is not None:
                    assert inspected.action is not None
                    # As it was in the snapshot in which the attempt was running.
                    action.CopyFrom(decode(inspected.action).action)
                    action.running.CopyFrom(running)

    async def seen_attempt(self, action: ScheduledAction) -> SeenAttempt | None:
        """The attempt that runs now at this decoded action, with the version that it belongs to."""
        now_us = self._clock.now_us()
        if not may_be_running(action.status, now_us):
            return None
        inspection = await self._read([action], now_us)
        [inspected] = inspection.actions
        running = _running(inspected, inspection)
        if running is None or inspected.action is None:
            return None
        return SeenAttempt(inspected.action.guid, inspected.action.scheduled_at_us, running)

    async def explain(self, action_id: str) -> ExplainActionResponse:
        until_us = self._clock.now_us() + LEASE_MAX_US + GRACE_MAX_US + MINUTE_US
        inspection = await self._pipeline.read(lambda: self._store.inspect(action_id, until_us))
        [(stored, live)] = inspection.actions
        if stored is None:
            raise NotFound(action_id)
        response = ExplainActionResponse()
        try:
            action = as_shown(decode(stored).action)
        except Damaged as error:
            action, found = decode_keys(stored).action, Answer("UNREADABLE", f"{error}.")
        else:
            situation = Situation(stored, action, inspection)
            found = answer(situation)
            response.stages.extend(stages(situation))
            if situation.running is not None:
                action.running.CopyFrom(situation.running)
        response.reason, response.answer, response.waits_for, response.next = found
        response.action.CopyFrom(action)
        set_us(response.time, inspection.now_us)
        if live is not None:
            _show_place(response, live.row, inspection)
        return response

    async def _read(self, actions: Sequence[ScheduledAction], now_us: int) -> Inspection:
        ids, until_us = [action.meta.id for action in actions], leased_until_us(actions, now_us)
        return await self._pipeline.read(lambda: self._store.running(ids, now_us, until_us))


def _running(inspected: Inspected, inspection: Inspection) -> Running | None:
    if inspected.action is None or inspected.live is None:
        return None
    try:
        status = decode(inspected.action).action.status
    except Damaged:
        return None
    return running_attempt(inspected.action, status, inspected.live, inspection.locks, inspection.now_us)


def _show_place(response: ExplainActionResponse, row: Row, inspection: Inspection) -> None:
    """Where the live row is, and who holds its shard."""
    response.row.queue, response.row.shard = row.queue.value, row.shard_id
    set_us(response.row.scheduled_time, row.scheduled_at_us)
    for lock in inspection.locks:
        if lock.shard_id == row.shard_id:
            shown = response.lock
            shown.held, shown.worker = lock.locked, lock.locked_by
            set_us(shown.since_time, lock.processing_start_at_us)
            set_us(shown.heartbeat_time, lock.heartbeat_at_us)
