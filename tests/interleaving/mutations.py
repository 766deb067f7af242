"""The guard, with one of its conditions left out. The explorer must find each of these out, or it is worth nothing."""

from collections.abc import Sequence

from clepsydra.core.action.events import Decision
from clepsydra.core.plan import Begin
from clepsydra.core.times import SECOND_US
from clepsydra.scheduler.writes.commands import Cancel
from clepsydra.scheduler.writes.lives import Plan, Stamp
from clepsydra.store.memory import MemoryStore
from clepsydra.store.memory.store import QueueRow, _key
from clepsydra.store.port import (
    Action,
    Advance,
    AdvanceOutcome,
    Due,
    Mark,
    Put,
    PutOutcome,
    PutResult,
    Queue,
    Row,
)
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status
from clepsydra.v1.scheduler_pb2 import CancelActionRequest
from tests.interleaving.world import Shape, World

_UPDATED = Shape((("create", 0), ("update", 0)), begins=1, crashes=0)


class MigrateWithoutLooking(World):
    """Migrate writes the row to processing_queue without checking that it still is in incoming_queue."""

    class Store(MemoryStore):
        async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
            for row in rows:
                self.rows.pop(_key(row), None)
                key = (Queue.PROCESSING, row.shard_id, row.scheduled_at_us, row.action_id, row.guid)
                self.rows[key] = QueueRow(row.scheduled_at_us, row.at_us, moved_by=mark)
            return len(rows)

    store_class = Store


class FinishWithoutGuid(World):
    """An advance that has seen the right status_scheduled_at does not ask whose life it is."""

    class Store(MemoryStore):
        def _advance(self, advance: Advance, mark: Mark) -> AdvanceOutcome:
            action = self.actions.get(advance.row.action_id)
            if action is None or advance.seen_scheduled_at_us != action.scheduled_at_us:
                return super()._advance(advance, mark)
            self.actions[action.action_id] = action._replace(guid=advance.row.guid)
            outcome = super()._advance(advance, mark)
            if action.action_id in self.actions:
                self.actions[action.action_id] = self.actions[action.action_id]._replace(guid=action.guid)
            return outcome

    store_class = Store


class FinishAndExtendWithoutVersion(World):
    """Finish and extend do not require the status_scheduled_at that they saw."""

    class Store(MemoryStore):
        def _advance(self, advance: Advance, mark: Mark) -> AdvanceOutcome:
            return super()._advance(advance._replace(seen_scheduled_at_us=None), mark)

    store_class = Store


class StatusKeepsItsVersion(World):
    """A write of the status leaves status_scheduled_at as it was."""

    class Store(MemoryStore):
        def _advance(self, advance: Advance, mark: Mark) -> AdvanceOutcome:
            action = self.actions.get(advance.row.action_id)
            if advance.status is not None and action is not None:
                advance = advance._replace(status_scheduled_at_us=action.scheduled_at_us)
            return super()._advance(advance, mark)

    store_class = Store


class RowStaysAtItsTime(World):
    """A begin moves the row to its own time."""

    def _begin(self, due: Due, worker: int) -> Begin | None:
        begin = super()._begin(due, worker)
        if begin is None or begin.decision is not Decision.BEGIN or due.row.queue is not Queue.PROCESSING:
            return begin
        return begin._replace(advance=begin.advance._replace(to_us=due.row.at_us))


class BeginWithoutMark(World):
    """Where a row has moved as wanted, whoever wanted it takes that for the work of an earlier try."""

    class Store(MemoryStore):
        def _advance(self, advance: Advance, mark: Mark) -> AdvanceOutcome:
            row = advance.row
            if _key(row) not in self.rows and advance.to_us is not None:
                target = (Queue.PROCESSING, row.shard_id, advance.to_us, row.action_id, row.guid)
                return AdvanceOutcome.DONE if target in self.rows else AdvanceOutcome.GONE
            return super()._advance(advance, mark)

    store_class = Store


class PutWithoutComparison(World):
    """A put overwrites whatever there is."""

    class Store(MemoryStore):
        def _put(self, put: Put) -> PutResult:
            current = self.actions.get(put.action.action_id)
            return super()._put(put._replace(seen=current))

    store_class = Store


class SettingsWriteTheStatus(World):
    """A put without a shard writes the status that it saw, and not meta and spec alone."""

    class Store(MemoryStore):
        def _put(self, put: Put) -> PutResult:
            result = super()._put(put)
            if put.shard_id is None and result.outcome is PutOutcome.DONE:
                self.actions[put.action.action_id] = put.action
            return result

    store_class = Store


class DeleteWithoutTombstone(World):
    """A delete removes the action at once."""

    class Store(MemoryStore):
        def _put(self, put: Put) -> PutResult:
            result = super()._put(put)
            if result.outcome is PutOutcome.DONE and _is_tombstone(put.action):
                self.actions.pop(put.action.action_id, None)
            return result

    store_class = Store


class CancelEndsAnyOccurrence(World):
    """A cancellation that has to be planned again ends whatever occurrence is current by then."""

    class Forgetful(Cancel):
        def plan(self, current: Action | None) -> Plan:
            self._seen = None
            return super().plan(current)

    def _cancel(self, request: CancelActionRequest, stamp: Stamp) -> Cancel:
        return self.Forgetful(request, stamp)


class GuidUsedTwice(World):
    """Every other call of the client makes the same life."""

    def guid(self, number: int) -> str:
        return super().guid(number % 2)


def _is_tombstone(action: Action) -> bool:
    return Status.FromString(action.status).state == action_pb2.DELETED


# Each mutation, and the smallest world in which it shows.
MUTATIONS: dict[type[World], Shape] = {
    MigrateWithoutLooking: Shape((("create", 0),), begins=1, crashes=0, troubles=0),
    FinishWithoutGuid: _UPDATED,
    FinishAndExtendWithoutVersion: Shape((("create", 0),), begins=2, crashes=0, kept_us=3600 * SECOND_US),
    StatusKeepsItsVersion: Shape((("create", 0),), begins=2, crashes=0, troubles=0),
    RowStaysAtItsTime: Shape((("create", 0),), begins=2, crashes=0, troubles=0),
    BeginWithoutMark: Shape((("create", 0),), begins=2, crashes=0, troubles=0),
    PutWithoutComparison: _UPDATED,
    SettingsWriteTheStatus: Shape((("create", 0), ("settings", 0)), begins=2, crashes=0, troubles=0),
    DeleteWithoutTombstone: Shape((("create", 0), ("delete", 0)), begins=0, crashes=0),
    CancelEndsAnyOccurrence: Shape((("create", 0), ("cancel", 0)), begins=1, crashes=0, troubles=0, periodic=True),
    GuidUsedTwice: Shape((("create", 0), ("update", 0), ("update", 0)), begins=0, crashes=0, troubles=0),
}
