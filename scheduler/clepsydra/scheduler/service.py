"""The scheduler: every call of the API, from message to message, without gRPC."""

from collections.abc import Sequence

from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from clepsydra.core.clock import Clock
from clepsydra.core.ids import Ids
from clepsydra.core.moments import SECOND_US
from clepsydra.core.validation import violations_of
from clepsydra.scheduler.answers import encoded_answer, encoded_answers, shown
from clepsydra.scheduler.bulk import columns_of, creations
from clepsydra.scheduler.carrier import Carrier
from clepsydra.scheduler.changes import Change, Command, Create, Delete, Stamp, Update, known_id
from clepsydra.scheduler.errors import DeadlinePassed, InvalidArgument, NotFound, SchedulerError
from clepsydra.scheduler.fate import Call, Outcome
from clepsydra.scheduler.pages import page
from clepsydra.scheduler.records import decoded
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.scheduler.statuses import status_of
from clepsydra.store.port import Action, Store
from clepsydra.v1.action_pb2 import ScheduledAction
from clepsydra.v1.scheduler_pb2 import (
    BatchCreateActionsRequest,
    BatchCreateActionsResponse,
    BatchDeleteActionsRequest,
    BatchDeleteActionsResponse,
    CreateActionRequest,
    DeleteActionRequest,
    DeleteActionResponse,
    GetActionRequest,
    ListActionsRequest,
    ListActionsResponse,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)


class Scheduler:
    """A call may be told for how long its caller will wait: what was not sent to the store by then is not written."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, settings: SchedulerSettings) -> None:
        self._clock = clock
        self._store = store
        self._shards = store.shards
        self._ids = ids
        self._deleted_retention_us = settings.deleted_retention_us
        self._carrier = Carrier(store, clock, ids, settings)

    async def create(self, request: CreateActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return ScheduledAction.FromString(await self.create_encoded(request, remaining_s))

    async def create_encoded(self, request: CreateActionRequest, remaining_s: float | None = None) -> bytes:
        """The same, as it goes out."""
        stamp = self._stamp()
        action_id = known_id(request) or self._ids.action_id(stamp.now_us)
        return encoded_answer(await self._carry_out(Create(request, action_id, stamp), remaining_s))

    async def get(self, request: GetActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        _check(request)
        [stored] = await self._carrier.look([request.id], self._deadline_us(remaining_s))
        record = None if stored is None else decoded(stored)
        if record is None or record.is_deleted:
            raise NotFound(request.id)
        return record.action

    async def list_actions(self, request: ListActionsRequest, remaining_s: float | None = None) -> ListActionsResponse:
        _check(request)
        deadline_us = self._deadline_us(remaining_s)

        async def read_on(after_id: str | None, limit: int) -> list[Action]:
            if deadline_us is not None and deadline_us <= self._clock.monotonic_us():
                raise DeadlinePassed("the call's deadline passed before its page was read")
            return await self._carrier.read(lambda: self._store.list_actions(after_id, limit))

        return await page(request, read_on)

    async def update(self, request: UpdateActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return shown(await self._carry_out(Update(request, self._stamp()), remaining_s))

    async def delete(self, request: DeleteActionRequest, remaining_s: float | None = None) -> DeleteActionResponse:
        await self._carry_out(self._delete(request, self._stamp()), remaining_s)
        return DeleteActionResponse()

    async def pause(self, request: PauseActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return await self._command(request, remaining_s)

    async def resume(self, request: ResumeActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return await self._command(request, remaining_s)

    async def run(self, request: RunActionRequest, remaining_s: float | None = None) -> ScheduledAction:
        return await self._command(request, remaining_s)

    async def batch_create(
        self, request: BatchCreateActionsRequest, remaining_s: float | None = None
    ) -> BatchCreateActionsResponse:
        return BatchCreateActionsResponse.FromString(await self.batch_create_encoded(request, remaining_s))

    async def batch_create_encoded(self, request: BatchCreateActionsRequest, remaining_s: float | None = None) -> bytes:
        """The same, as it goes out."""
        _check(request)
        now_us = self._clock.now_us()
        columns = columns_of(request, now_us)
        if columns is None:
            return encoded_answers(await self._carry_out_all(self._creates(request.requests, now_us), remaining_s))
        puts = creations(columns, self._ids, self._shards, now_us)
        outcomes = await self._carrier.create_all(request.requests, puts, self._deadline_us(remaining_s))
        return encoded_answers(_seen_from_batch(outcomes))

    async def batch_delete(
        self, request: BatchDeleteActionsRequest, remaining_s: float | None = None
    ) -> BatchDeleteActionsResponse:
        _check(request)
        stamps = self._stamps(len(request.requests), self._clock.now_us())
        changes = [self._delete(each, stamp) for each, stamp in zip(request.requests, stamps, strict=True)]
        response = BatchDeleteActionsResponse()
        for outcome in await self._carry_out_all(changes, remaining_s):
            result = response.results.add()
            if isinstance(outcome, Action):
                result.deleted.SetInParent()
            else:
                result.error.CopyFrom(outcome)
        return response

    async def close(self) -> None:
        """Finish what was accepted. The store stays open: it belongs to whoever opened it."""
        await self._carrier.idle()

    def _creates(self, requests: Sequence[CreateActionRequest], now_us: int) -> list[Create]:
        stamps = self._stamps(len(requests), now_us)
        known = [known_id(request) for request in requests]
        unknown = known.count("")
        generated = iter(self._ids.action_ids(unknown, now_us) if unknown else [])
        return [
            Create(request, action_id or next(generated), stamp)
            for request, action_id, stamp in zip(requests, known, stamps, strict=True)
        ]

    def _delete(self, request: DeleteActionRequest, stamp: Stamp) -> Delete:
        return Delete(request, stamp, self._deleted_retention_us)

    async def _command(
        self, request: PauseActionRequest | ResumeActionRequest | RunActionRequest, remaining_s: float | None
    ) -> ScheduledAction:
        return shown(await self._carry_out(Command(request, self._stamp()), remaining_s))

    def _stamp(self) -> Stamp:
        return Stamp(self._ids.guid(), self._ids.shard(self._shards), self._clock.now_us())

    def _stamps(self, count: int, now_us: int) -> list[Stamp]:
        """For the changes of one call."""
        shards, guids = self._ids.shards_of_many(self._shards, count), self._ids.guids(count)
        return [Stamp(guid, shard_id, now_us) for guid, shard_id in zip(guids, shards, strict=True)]

    def _deadline_us(self, remaining_s: float | None) -> int | None:
        return None if remaining_s is None else self._clock.monotonic_us() + int(remaining_s * SECOND_US)

    async def _carry_out(self, change: Change, remaining_s: float | None) -> Action:
        call = Call(change, self._deadline_us(remaining_s))
        await self._carrier.carry_out(call)
        outcome = call.settled()
        if isinstance(outcome, SchedulerError):
            raise outcome
        return outcome

    async def _carry_out_all(self, changes: Sequence[Change], remaining_s: float | None) -> list[Action | Status]:
        """What becomes of each, in their order: an action, or an error as users see it."""
        deadline_us = self._deadline_us(remaining_s)
        calls = [Call(change, deadline_us) for change in changes]
        await self._carrier.carry_out_all(calls, deadline_us)
        return _seen_from_batch([call.settled() for call in calls])


def _check(request: Message) -> None:
    violations = violations_of(request)
    if violations:
        raise InvalidArgument(violations)


def _seen_from_batch(outcomes: Sequence[Outcome]) -> list[Action | Status]:
    return [
        outcome if isinstance(outcome, Action) else _error_in_batch(outcome, index)
        for index, outcome in enumerate(outcomes)
    ]


def _error_in_batch(error: SchedulerError, index: int) -> Status:
    return status_of(error.under(f"requests[{index}]") if isinstance(error, InvalidArgument) else error)
