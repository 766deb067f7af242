"""Mutations: what each changing call makes of the stored action. This half of the scheduler is pure.

A mutation plans, from the action as the store has it, what to write and what to respond; or finds that it repeats an
earlier call, and responds without a write; or raises why it cannot be done. It may be planned again if the stored
action changed in between. Guid, shard and time are chosen before the first try, and every plan carries the same ones.
"""

from typing import Any, Protocol

from clepsydra.core.action.creation import FIRST_REVISION, ImpossibleNow, new_action
from clepsydra.core.action.events import Deleted
from clepsydra.core.action.update import Updated, keep_start, update_plan
from clepsydra.core.action.update_mask import LABELS, clears_start, merge_spec, updates_spec
from clepsydra.core.times import us_of
from clepsydra.core.validation.requests import spec_violations
from clepsydra.scheduler.codec import DecodedAction, decode, decode_or_keys, encode
from clepsydra.scheduler.errors import AlreadyExists, EtagMismatch, InvalidArgument, NotFound
from clepsydra.scheduler.writes.idempotency import Applied, find_applied, key_of
from clepsydra.scheduler.writes.lives import (
    Plan,
    Stamp,
    apply_event,
    check_etag,
    new_guid,
    new_life,
    next_revision,
    response_to_repetition,
    same_life,
)
from clepsydra.store.port import Action, Put
from clepsydra.v1.action_pb2 import AppliedRequest, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import CreateActionRequest, DeleteActionRequest, UpdateActionRequest

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
        return response, new_life(response, FIRST_REVISION, self._key, earlier, self._stamp, current)


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
        check_etag(self.request.etag, stored)
        paths = self.request.update_mask.paths
        action = stored.action
        next_revision(action.meta, self._stamp)
        if LABELS in paths or (not paths and self.request.action.meta.labels):
            action.meta.ClearField("labels")
            action.meta.labels.update(self.request.action.meta.labels)
        self.plan_effect = ScheduledAction.KEPT
        if not paths or updates_spec(paths):
            self._update_spec(action)
        revision, response = action.meta.revision, encode(action)
        in_life = same_life if self.plan_effect == ScheduledAction.KEPT else new_life
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
            new_guid(action.meta, self._stamp)

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
        put = new_life(response, FIRST_REVISION, self._key, earlier, self._stamp, current, self.plan_effect)
        return self._unless_validate_only(response, put)

    def _first_response(self, applied: AppliedRequest, stored: DecodedAction) -> Action:
        self.plan_effect = applied.plan_effect
        if applied.revision == FIRST_REVISION:
            return _created(self.request.action, self.action_id, applied.guid, us_of(applied.time))
        return response_to_repetition(applied, stored)

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
        check_etag(self.request.etag, stored)
        tombstone = stored.action
        next_revision(tombstone.meta, self._stamp)
        new_guid(tombstone.meta, self._stamp)
        apply_event(tombstone, Deleted(self._retention_us), self._stamp.now_us)
        # A user who deletes an action expects its content to be gone.
        tombstone.ClearField("spec")
        tombstone.meta.ClearField("labels")
        response = encode(tombstone)
        if self.request.validate_only:
            return response, None
        return response, new_life(response, tombstone.meta.revision, self._key, stored.applied, self._stamp, current)


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
