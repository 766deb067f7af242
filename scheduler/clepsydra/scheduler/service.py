"""The scheduler: every call of the API, from message to message, without gRPC."""

from google.protobuf.message import Message

from clepsydra.core.clock import BoundedClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import SECOND_US
from clepsydra.core.validation.requests import violations_of
from clepsydra.scheduler.api.grpc_status import item_error_of
from clepsydra.scheduler.api.pagination import page
from clepsydra.scheduler.api.responses import as_shown, encode_action, encode_results, to_message
from clepsydra.scheduler.codec import decode
from clepsydra.scheduler.errors import DeadlinePassed, InvalidArgument, NotFound, SchedulerError
from clepsydra.scheduler.inspections import Inspections
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.scheduler.writes.action_import import Import
from clepsydra.scheduler.writes.call import Outcome
from clepsydra.scheduler.writes.commands import Cancel, Command
from clepsydra.scheduler.writes.lives import Stamp
from clepsydra.scheduler.writes.mutations import Delete, Mutation, Update
from clepsydra.scheduler.writes.pipeline import WritePipeline
from clepsydra.store.errors import StoreLost
from clepsydra.store.port import Action, Store
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchCreateActionsResponse,
    BatchDeleteActionsRequest,
    BatchDeleteActionsResponse,
    CancelActionRequest,
    CancelActionResponse,
    CreateActionRequest,
    DeleteActionRequest,
    DeleteActionResponse,
    ExplainActionRequest,
    ExplainActionResponse,
    GetActionRequest,
    ImportActionsRequest,
    ImportActionsResponse,
    ListActionsRequest,
    ListActionsResponse,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)


class Scheduler:
    """`remaining_s` is how long the caller will wait. A change that is not sent by then is not written."""

    def __init__(self, store: Store, clock: BoundedClock, ids: Ids, settings: SchedulerSettings) -> None:
        self._clock = clock
        self._store = store
        self._shards = store.shards
        self._ids = ids
        self._deleted_retention_us = settings.deleted_retention_us
        self._pipeline = WritePipeline(store, clock, ids, settings)
        self._inspections = Inspections(store, clock, self._pipeline)

    async def store_lost(self) -> StoreLost:
        """Wait until the store says that this process may not use it any more: then the process has to end."""
        return await self._pipeline.store_lost()

    async def create(self, request: CreateActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return ScheduledAction.FromString(await self.create_encoded(request, remaining_s))

    async def create_encoded(self, request: CreateActionRequest, remaining_s: float | None = None) -> bytes:
        """The response as it is sent."""
        [outcome] = await self._pipeline.create([request], self._deadline_us(remaining_s))
        return encode_action(_raise_or_return(outcome))

    async def batch_create(
        self, request: BatchCreateActionsRequest, remaining_s: float | None = None
    ) -> BatchCreateActionsResponse:
        return BatchCreateActionsResponse.FromString(await self.batch_create_encoded(request, remaining_s))

    async def batch_create_encoded(self, request: BatchCreateActionsRequest, remaining_s: float | None = None) -> bytes:
        """The response as it is sent."""
        _check(request)
        outcomes = await self._pipeline.create(list(request.requests), self._deadline_us(remaining_s))
        return encode_results(outcomes, item_error_of)

    async def get(self, request: GetActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        _check(request)
        [stored] = await self._pipeline.look([request.id], self._deadline_us(remaining_s))
        decoded = None if stored is None else decode(stored)
        if decoded is None or decoded.is_deleted:
            raise NotFound(request.id)
        await self._inspections.add_running([decoded.action])
        return as_shown(decoded.action)

    async def list_actions(self, request: ListActionsRequest, remaining_s: float | None = None) -> ListActionsResponse:
        _check(request)
        deadline_us = self._deadline_us(remaining_s)

        async def read_after(after_id: str | None, limit: int) -> list[Action]:
            if deadline_us is not None and deadline_us <= self._clock.monotonic_us():
                raise DeadlinePassed("the call's deadline passed before its page was read")
            return await self._pipeline.read(lambda: self._store.list_actions(after_id, limit))

        response = await page(request, read_after)
        await self._inspections.add_running(response.actions)
        for action in response.actions:
            as_shown(action)
        return response

    async def update(self, request: UpdateActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        mutation = Update(request, self._stamp())
        action = to_message(await self._change(mutation, remaining_s))
        action.plan_effect = mutation.plan_effect
        return action

    async def delete(self, request: DeleteActionRequest, remaining_s: float | None = None) -> DeleteActionResponse:
        await self._change(Delete(request, self._stamp(), self._deleted_retention_us), remaining_s)
        return DeleteActionResponse()

    async def batch_delete(
        self, request: BatchDeleteActionsRequest, remaining_s: float | None = None
    ) -> BatchDeleteActionsResponse:
        _check(request)
        mutations = [
            Delete(each, stamp, self._deleted_retention_us)
            for each, stamp in zip(request.requests, self._stamps(len(request.requests)), strict=True)
        ]
        outcomes = await self._pipeline.change(mutations, self._deadline_us(remaining_s))
        response = BatchDeleteActionsResponse()
        for index, outcome in enumerate(outcomes):
            result = response.results.add()
            if isinstance(outcome, Action):
                result.deleted.SetInParent()
            else:
                result.error.CopyFrom(item_error_of(outcome, index))
        return response

    async def import_actions(
        self, request: ImportActionsRequest, remaining_s: float | None = None
    ) -> ImportActionsResponse:
        _check(request)
        stamps = self._stamps(len(request.requests))
        imports = [Import(each, stamp) for each, stamp in zip(request.requests, stamps, strict=True)]
        outcomes = await self._pipeline.change(imports, self._deadline_us(remaining_s))
        response = ImportActionsResponse()
        for index, (each, outcome) in enumerate(zip(imports, outcomes, strict=True)):
            if isinstance(outcome, Action):
                response.results.add(outcome=each.outcome)
            else:
                response.results.add(error=item_error_of(outcome, index))
        return response

    async def pause(self, request: PauseActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return to_message(await self._change(Command(request, self._stamp()), remaining_s))

    async def resume(self, request: ResumeActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return to_message(await self._change(Command(request, self._stamp()), remaining_s))

    async def run(self, request: RunActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return to_message(await self._change(Command(request, self._stamp()), remaining_s))

    async def cancel(self, request: CancelActionRequest, remaining_s: float | None = None) -> CancelActionResponse:
        _check(request)
        [stored] = await self._pipeline.look([request.id], self._deadline_us(remaining_s))
        seen = None if stored is None else decode(stored).action
        attempt = None if seen is None else await self._inspections.seen_attempt(seen)
        mutation = Cancel(request, self._stamp(), seen, attempt)
        action = to_message(await self._change(mutation, remaining_s))
        cancelled = (
            CancelActionResponse.RUNNING_ATTEMPT
            if mutation.cancelled_attempt
            else CancelActionResponse.WAITING_OCCURRENCE
        )
        return CancelActionResponse(action=action, cancelled=cancelled)

    async def explain(self, request: ExplainActionRequest, remaining_s: float | None = None) -> ExplainActionResponse:
        _check(request)
        del remaining_s
        return await self._inspections.explain(request.id)

    async def close(self) -> None:
        """Finish what was accepted. The store stays open."""
        await self._pipeline.idle()

    async def _change(self, mutation: Mutation, remaining_s: float | None) -> Action:
        [outcome] = await self._pipeline.change([mutation], self._deadline_us(remaining_s))
        return _raise_or_return(outcome)

    def _stamp(self) -> Stamp:
        return Stamp(self._ids.guid(), self._ids.shard(self._shards), self._clock.latest_us())

    def _stamps(self, count: int) -> list[Stamp]:
        """For the changes of one call."""
        now_us, shard_ids, guids = (
            self._clock.latest_us(),
            self._ids.shard_runs(self._shards, count),
            self._ids.guids(count),
        )
        return [Stamp(guid, shard_id, now_us) for guid, shard_id in zip(guids, shard_ids, strict=True)]

    def _deadline_us(self, remaining_s: float | None) -> int | None:
        return None if remaining_s is None else self._clock.monotonic_us() + int(remaining_s * SECOND_US)


def _check(request: Message) -> None:
    violations = violations_of(request)
    if violations:
        raise InvalidArgument(violations)


def _raise_or_return(outcome: Outcome) -> Action:
    if isinstance(outcome, SchedulerError):
        raise outcome
    return outcome
