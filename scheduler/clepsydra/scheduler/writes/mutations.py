"""Mutations: what each changing call makes of the stored action. This half of the scheduler is pure.

A mutation plans, from the action as the store has it, what to write and what to respond; or finds that it repeats an
earlier call, and responds without a write; or raises why it cannot be done. It may be planned again if the stored
action changed in between. Guid, shard and time are chosen before the first try, and every plan carries the same ones.
"""

from typing import Any, NamedTuple, Protocol

from clepsydra.core.action.attempt import attempt_id
from clepsydra.core.action.creation import FIRST_REVISION, ImpossibleNow, etag_of, new_action
from clepsydra.core.action.events import Cancelled, Deleted, Event, Paused, Resumed, RunRequested
from clepsydra.core.action.occurrence import attempt_number, carry_over
from clepsydra.core.action.state_machine import ENDED, ImpossibleEvent, Moment, step
from clepsydra.core.action.update import Updated, keep_start, update_plan
from clepsydra.core.action.update_mask import LABELS, clears_start, merge_spec, updates_spec
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.times import set_us, us_of
from clepsydra.core.validation.requests import spec_violations
from clepsydra.core.wording import rfc3339
from clepsydra.scheduler.codec import DecodedAction, decode, decode_or_keys, encode, with_removable_time
from clepsydra.scheduler.errors import (
    AlreadyExists,
    EtagMismatch,
    InvalidArgument,
    NotFound,
    OccurrenceEnded,
    WrongState,
)
from clepsydra.scheduler.writes.idempotency import Applied, IdempotencyKey, find_applied, key_of, remember
from clepsydra.store.port import Action, Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, Attempt, Meta, Running, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    CancelActionRequest,
    CreateActionRequest,
    DeleteActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)


class Stamp(NamedTuple):
    """Chosen once per call: however often it is tried, it starts the same life."""

    guid: str
    shard_id: int
    now_us: int


# The response, encoded, and what must be written first, if anything.
Plan = tuple[Action, Put | None]

# The response to the deletion of an action that does not exist.
_NO_ACTION = Action("", "", b"", b"", b"", 0)


class Mutation(Protocol):
    """A call by a user that changes an action."""

    request: Any
    action_id: str

    def plan(self, current: Action | None) -> Plan:
        """What to write where the store has this; raises a SchedulerError if it cannot be done."""
        ...


class Create:
    def __init__(self, request: CreateActionRequest, action_id: str, stamp: Stamp) -> None:
        self.request = request
        self.action_id = action_id
        self._key = key_of(request)
        self._stamp = stamp

    def plan(self, current: Action | None) -> Plan:
        earlier: Applied = ()
        if current is not None:
            stored = decode(current)
            applied = find_applied(self._key, stored.applied)
            if applied is not None:
                return _created(self.request.action, self.action_id, applied.guid, us_of(applied.time)), None
            if not stored.is_deleted:
                raise AlreadyExists(self.action_id)
            earlier = stored.applied
        response = _created(self.request.action, self.action_id, self._stamp.guid, self._stamp.now_us)
        if self.request.validate_only:
            return response, None
        return response, _new_life(response, FIRST_REVISION, self._key, earlier, self._stamp, current)


class Update:
    # What the last plan does to the plan of the action.
    plan_effect = ScheduledAction.PLAN_EFFECT_UNSPECIFIED

    def __init__(self, request: UpdateActionRequest, stamp: Stamp) -> None:
        self.action_id = request.action.meta.id
        self.request = request
        self._key = key_of(request)
        self._stamp = stamp

    def plan(self, current: Action | None) -> Plan:
        stored = None if current is None else decode(current)
        applied = None if stored is None else find_applied(self._key, stored.applied)
        if stored is not None and applied is not None:
            return self._first_response(applied, stored), None
        if current is None or stored is None or stored.is_deleted:
            return self._create(current, stored)
        _check_etag(self.request.etag, stored)
        paths = self.request.update_mask.paths
        action = stored.action
        _next_revision(action.meta, self._stamp)
        if LABELS in paths or (not paths and self.request.action.meta.labels):
            action.meta.ClearField("labels")
            action.meta.labels.update(self.request.action.meta.labels)
        self.plan_effect = ScheduledAction.KEPT
        if not paths or updates_spec(paths):
            self._update_spec(action)
        revision, response = action.meta.revision, encode(action)
        in_life = _same_life if self.plan_effect == ScheduledAction.KEPT else _new_life
        put = in_life(response, revision, self._key, stored.applied, self._stamp, current, self.plan_effect)
        return self._unless_validate_only(response, put)

    def _update_spec(self, action: ScheduledAction) -> None:
        """Change spec, status and guid of the stored action in place."""
        before, spec, paths = Spec(), action.spec, self.request.update_mask.paths
        before.CopyFrom(spec)
        if paths:
            merge_spec(spec, self.request.action.spec, paths)
            _check_spec(spec)
        else:
            spec.CopyFrom(self.request.action.spec)
        if not clears_start(paths):
            keep_start(spec.schedule, before.schedule)
        status, self.plan_effect = _updated(before, action, self._stamp.now_us)
        if self.plan_effect != ScheduledAction.KEPT:
            action.status.CopyFrom(status)
            _new_guid(action.meta, self._stamp)

    def _create(self, current: Action | None, stored: DecodedAction | None) -> Plan:
        """Without a stored action there is nothing to merge with, and a mask means nothing."""
        if not self.request.allow_missing:
            raise NotFound(self.action_id)
        if self.request.etag:
            raise EtagMismatch(self.action_id)
        _check_spec(self.request.action.spec)
        response = _created(self.request.action, self.action_id, self._stamp.guid, self._stamp.now_us)
        earlier = () if stored is None else stored.applied
        self.plan_effect = ScheduledAction.PLANNED_AFRESH
        put = _new_life(response, FIRST_REVISION, self._key, earlier, self._stamp, current, self.plan_effect)
        return self._unless_validate_only(response, put)

    def _first_response(self, applied: AppliedRequest, stored: DecodedAction) -> Action:
        self.plan_effect = applied.plan_effect
        if applied.revision == FIRST_REVISION:
            return _created(self.request.action, self.action_id, applied.guid, us_of(applied.time))
        return _response_to_repetition(applied, stored)

    def _unless_validate_only(self, response: Action, put: Put) -> Plan:
        return response, None if self.request.validate_only else put


class Delete:
    """The response is the tombstone, which users do not see."""

    def __init__(self, request: DeleteActionRequest, stamp: Stamp, retention_us: int) -> None:
        self.action_id = request.id
        self.request = request
        self._key = key_of(request)
        self._stamp = stamp
        self._retention_us = retention_us

    def plan(self, current: Action | None) -> Plan:
        # An action that cannot be decoded can still be deleted.
        stored = None if current is None else decode_or_keys(current)
        if stored is not None and find_applied(self._key, stored.applied) is not None:
            return encode(stored.action), None
        if current is None or stored is None or stored.is_deleted:
            if self.request.allow_missing:
                return _NO_ACTION, None
            raise NotFound(self.action_id)
        _check_etag(self.request.etag, stored)
        tombstone = stored.action
        _next_revision(tombstone.meta, self._stamp)
        _new_guid(tombstone.meta, self._stamp)
        _apply(tombstone, Deleted(self._retention_us), self._stamp.now_us)
        # A user who deletes an action expects its content to be gone.
        tombstone.ClearField("spec")
        tombstone.meta.ClearField("labels")
        response = encode(tombstone)
        if self.request.validate_only:
            return response, None
        return response, _new_life(response, tombstone.meta.revision, self._key, stored.applied, self._stamp, current)


class Command:
    """Pause, resume, run and cancel: the spec stays, an event changes the status."""

    def __init__(self, request: Any, stamp: Stamp) -> None:
        self.action_id = request.id
        self.request = request
        self._event, self._participle = _COMMANDS[type(request)]
        self._key = key_of(request)
        self._stamp = stamp

    def plan(self, current: Action | None) -> Plan:
        stored = None if current is None else decode(current)
        applied = None if stored is None else find_applied(self._key, stored.applied)
        if stored is not None and applied is not None:
            return _response_to_repetition(applied, stored), None
        if current is None or stored is None or stored.is_deleted:
            raise NotFound(self.action_id)
        _check_etag(self.request.etag, stored)
        action = stored.action
        event = self._event_in(action)
        carry_over(action.status, action.meta.guid, self._stamp.now_us)
        _next_revision(action.meta, self._stamp)
        _new_guid(action.meta, self._stamp)
        try:
            _apply(action, event, self._stamp.now_us)
        except ImpossibleEvent as error:
            state = action_pb2.State.Name(action.status.state)
            raise WrongState(f"action {self.action_id!r} is {state} and cannot be {self._participle}") from error
        response = encode(action)
        return response, self._new_life(response, action.meta.revision, stored.applied, current)

    def _event_in(self, _action: ScheduledAction) -> Event:
        return self._event

    def _new_life(self, response: Action, revision: int, earlier: Applied, seen: Action) -> Put:
        return _new_life(response, revision, self._key, earlier, self._stamp, seen)


class SeenAttempt(NamedTuple):
    """An attempt that was running when a call looked, and the version of the action that it was an attempt at."""

    guid: str
    scheduled_at_us: int
    running: Running


class Cancel(Command):
    """Gives one occurrence up: the one that the call saw first, and never a later one.

    If the store refuses the put, because the attempt ended or the action was changed meanwhile, the call is planned
    again. It then goes on only if the same occurrence of the same life is still current.
    """

    def __init__(
        self,
        request: CancelActionRequest,
        stamp: Stamp,
        seen: ScheduledAction | None = None,
        attempt: SeenAttempt | None = None,
    ) -> None:
        super().__init__(request, stamp)
        self._attempt = attempt
        # The life and the occurrence that the call saw first. What other calls write with it does not count.
        self._seen: tuple[str, int] | None = None
        if seen is not None:
            self._see(seen)
        # Whether an attempt was running when the occurrence was given up.
        self.cancelled_attempt = False

    def plan(self, current: Action | None) -> Plan:
        if current is not None:
            applied = find_applied(self._key, decode(current).applied)
            self.cancelled_attempt = applied is not None and applied.cancelled_attempt
        return super().plan(current)

    def _event_in(self, action: ScheduledAction) -> Event:
        meta, status = action.meta, action.status
        occurrence_us = us_of(status.occurrence_time)
        if self._seen is None:
            self._see(action)
        assert self._seen is not None
        if status.state in ENDED:
            state = action_pb2.State.Name(status.state)
            raise OccurrenceEnded(f"action {meta.id!r} is {state} already, and its outcome is kept")
        if self._seen != (meta.guid, occurrence_us):
            raise OccurrenceEnded(
                f"the occurrence of {rfc3339(self._seen[1])} of action {meta.id!r} ended before it could be cancelled, "
                f"and its outcome is kept; the current one is of {rfc3339(occurrence_us)}"
            )
        attempt = self._running_attempt(action)
        self.cancelled_attempt = attempt is not None
        return Cancelled(attempt)

    def _see(self, action: ScheduledAction) -> None:
        named = self.request.HasField("occurrence_time")
        occurrence = self.request.occurrence_time if named else action.status.occurrence_time
        self._seen = action.meta.guid, us_of(occurrence)

    def _running_attempt(self, action: ScheduledAction) -> Attempt | None:
        """The attempt that was seen running, if nothing has been written since."""
        seen, status = self._attempt, action.status
        if seen is None or (seen.guid, seen.scheduled_at_us) != (action.meta.guid, us_of(status.scheduled_time)):
            return None
        number = attempt_number(status)
        attempt = Attempt(
            number=number,
            id=attempt_id(action.meta.guid, us_of(status.occurrence_time), number),
            start_time=seen.running.start_time,
            worker=seen.running.worker,
            outcome=Attempt.CANCELLATION,
            error="a user cancelled it",
        )
        set_us(attempt.end_time, self._stamp.now_us)
        return attempt

    def _new_life(self, response: Action, revision: int, earlier: Applied, seen: Action) -> Put:
        return _new_life(
            response, revision, self._key, earlier, self._stamp, seen, cancelled_attempt=self.cancelled_attempt
        )


_COMMANDS: dict[type, tuple[Event, str]] = {
    PauseActionRequest: (Paused(), "paused"),
    ResumeActionRequest: (Resumed(), "resumed"),
    RunActionRequest: (RunRequested(), "run"),
    CancelActionRequest: (Cancelled(), "cancelled"),
}


def _created(given: ScheduledAction, action_id: str, guid: str, now_us: int) -> Action:
    try:
        return new_action(given, action_id, guid, now_us)
    except ImpossibleNow as error:
        raise InvalidArgument(error.violations) from error


def _updated(before: Spec, action: ScheduledAction, now_us: int) -> Updated:
    try:
        return update_plan(before, action.spec, action.status, action.meta.guid, now_us)
    except ImpossibleNow as error:
        raise InvalidArgument(error.violations) from error


def _check_spec(spec: Spec) -> None:
    violations = spec_violations(spec)
    if violations:
        raise InvalidArgument(violations)


def _check_etag(etag: str, stored: DecodedAction) -> None:
    if etag and etag != stored.action.meta.etag:
        raise EtagMismatch(stored.action.meta.id)


def _next_revision(meta: Meta, stamp: Stamp) -> None:
    meta.revision += 1
    meta.etag = etag_of(meta.guid, meta.revision)
    set_us(meta.update_time, stamp.now_us)


def _new_guid(meta: Meta, stamp: Stamp) -> None:
    meta.guid = stamp.guid
    meta.etag = etag_of(stamp.guid, meta.revision)


def _apply(action: ScheduledAction, event: Event, now_us: int) -> None:
    """Apply an event to the action's status."""
    status, at_us = step(action.spec, action.status, event, Moment(now_us))
    action.status.CopyFrom(status)
    if at_us is None:
        # Only a worker removes an action: its row comes due at once, and a worker purges it.
        set_us(action.status.scheduled_time, now_us)


def _new_life(
    response: Action,
    revision: int,
    key: IdempotencyKey | None,
    earlier: Applied,
    stamp: Stamp,
    seen: Action | None,
    plan_effect: ScheduledAction.PlanEffect = ScheduledAction.PLAN_EFFECT_UNSPECIFIED,
    *,
    cancelled_attempt: bool = False,
) -> Put:
    row = remember(key, response, revision, earlier, stamp.now_us, plan_effect, cancelled_attempt=cancelled_attempt)
    if seen is not None:
        # If the action were removed before the last retry of the call that made an earlier life, that call would create
        # the earlier life again.
        row = with_removable_time(row, stamp.now_us + DELETED_RETENTION_MIN_US)
    return Put(seen, row, stamp.shard_id, stamp.now_us)


def _same_life(
    response: Action,
    revision: int,
    key: IdempotencyKey | None,
    earlier: Applied,
    stamp: Stamp,
    seen: Action,
    plan_effect: ScheduledAction.PlanEffect,
) -> Put:
    """A change of neither the schedule nor the target keeps guid, status and row."""
    row = remember(key, response, revision, earlier, stamp.now_us, plan_effect)
    return Put(seen, seen._replace(meta=row.meta, spec=row.spec), None, stamp.now_us)


def _response_to_repetition(applied: AppliedRequest, stored: DecodedAction) -> Action:
    """The action, if the life that the first call made goes on; otherwise the identity of that life."""
    if stored.action.meta.guid == applied.guid:
        return encode(stored.action)
    identity = ScheduledAction()
    meta = identity.meta
    meta.id = stored.action.meta.id
    meta.guid = applied.guid
    meta.revision = applied.revision
    meta.etag = applied.etag
    meta.update_time.CopyFrom(applied.time)
    return encode(identity)
