"""What each call makes of what is stored: the pure half of the scheduler.

A change proposes, from the action as the store has it, what to write and what to answer; or finds that it is a replay,
and answers with nothing to write; or says why it cannot be done. It may be asked again when the store tells that the
action was another by then. Guid, shard and time were chosen before the first try, and every proposal carries them.
"""

from typing import Any, NamedTuple, Protocol

from clepsydra.core.events import Deleted, Event, Paused, Resumed, RunRequested
from clepsydra.core.ids import action_id_for_request
from clepsydra.core.limits import DELETED_RETENTION_MIN_US
from clepsydra.core.moments import set_us, us_of
from clepsydra.core.transitions import ImpossibleEvent, Moment, step
from clepsydra.core.update_mask import LABELS, merge_spec, updates_spec
from clepsydra.core.validation import spec_violations
from clepsydra.scheduler.errors import AlreadyExists, Damaged, EtagMismatch, InvalidArgument, NotFound, WrongState
from clepsydra.scheduler.first_life import FIRST_REVISION, accepted, first_life
from clepsydra.scheduler.records import Record, decoded, encoded, removable_from, salvaged
from clepsydra.scheduler.replays import Applied, CallKey, etag_of, key_of, recognised, remembering
from clepsydra.scheduler.usual import usual_life
from clepsydra.store.port import Action, Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, Meta, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    CreateActionRequest,
    DeleteActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)


class Stamp(NamedTuple):
    """Chosen once per call: whatever is tried, and however often, it is the same life."""

    guid: str
    shard_id: int
    now_us: int


# What to answer, encoded, and what must be written first. Nothing to write: the answer stands as it is.
Proposal = tuple[Action, Put | None]

# The answer to the deletion of what is not there.
_NOBODY = Action("", "", b"", b"", b"", 0)


class Change(Protocol):
    """A call by a user that changes an action."""

    request: Any
    action_id: str
    # Whether it can be proposed without a look at what is stored.
    blind: bool

    def propose(self, current: Action | None) -> Proposal:
        """What to write where the store has this; raises a SchedulerError if it cannot be done."""
        ...


def known_id(request: CreateActionRequest) -> str:
    """The id that a creation gives its action. Empty: it is to be generated."""
    given = request.action
    if given.HasField("meta") and given.meta.id:
        action_id: str = given.meta.id
        return action_id
    return action_id_for_request(request.request_id) if request.request_id else ""


class Create:
    def __init__(self, request: CreateActionRequest, action_id: str, stamp: Stamp) -> None:
        self.request = request
        self.action_id = action_id
        self.blind = not request.validate_only
        self._key = key_of(request)
        self._stamp = stamp

    def propose(self, current: Action | None) -> Proposal:
        earlier: Applied = ()
        if current is not None:
            record = decoded(current)
            replayed = recognised(self._key, record.applied)
            if replayed is not None:
                return first_life(self.request.action, self.action_id, replayed.guid, us_of(replayed.time)), None
            if not record.is_deleted:
                raise AlreadyExists(self.action_id)
            earlier = record.applied
        answer = first_life(self.request.action, self.action_id, self._stamp.guid, self._stamp.now_us)
        if not self.blind:
            return answer, None
        return answer, _new_life(answer, FIRST_REVISION, self._key, earlier, self._stamp, current)

    def propose_usual(self) -> Proposal | None:
        """What to write where nothing is, for a request with the usual fields; None: it has to be looked at closely."""
        stamp = self._stamp
        answer = usual_life(self.request, self.action_id, stamp.guid, stamp.now_us)
        if answer is None:
            return None
        stored = remembering(self._key, answer, FIRST_REVISION, (), stamp.now_us)
        return answer, Put(None, stored, stamp.shard_id, stamp.now_us)


class Update:
    blind = False

    def __init__(self, request: UpdateActionRequest, stamp: Stamp) -> None:
        self.action_id = request.action.meta.id
        self.request = request
        self._key = key_of(request)
        self._stamp = stamp

    def propose(self, current: Action | None) -> Proposal:
        record = None if current is None else decoded(current)
        replayed = None if record is None else recognised(self._key, record.applied)
        if record is not None and replayed is not None:
            return self._first_result(replayed, record), None
        if current is None or record is None or record.is_deleted:
            return self._create(current, record)
        _check_etag(self.request.etag, record)
        paths = self.request.update_mask.paths
        action = record.action
        _next_revision(action.meta, self._stamp)
        if LABELS in paths or (not paths and self.request.action.meta.labels):
            action.meta.ClearField("labels")
            action.meta.labels.update(self.request.action.meta.labels)
        revision = action.meta.revision
        if paths and not updates_spec(paths):
            answer = encoded(action)
            put = _same_life(answer, revision, self._key, record.applied, self._stamp, current)
            return self._proposal(answer, put)
        if paths:
            merge_spec(action.spec, self.request.action.spec, paths)
            _check_spec(action.spec)
        else:
            action.spec.CopyFrom(self.request.action.spec)
        _new_guid(action.meta, self._stamp)
        was_paused = action.status.state == action_pb2.PAUSED
        status, _ = accepted(action.spec, self._stamp.now_us)
        action.status.CopyFrom(status)
        if was_paused:
            # Whoever changes what it does has not asked for it to go on.
            _apply(action, Paused(), self._stamp.now_us)
        answer = encoded(action)
        return self._proposal(answer, _new_life(answer, revision, self._key, record.applied, self._stamp, current))

    def _create(self, current: Action | None, record: Record | None) -> Proposal:
        """There is nothing to merge with: a mask means nothing here."""
        if not self.request.allow_missing:
            raise NotFound(self.action_id)
        if self.request.etag:
            raise EtagMismatch(self.action_id)
        _check_spec(self.request.action.spec)
        answer = first_life(self.request.action, self.action_id, self._stamp.guid, self._stamp.now_us)
        earlier = () if record is None else record.applied
        return self._proposal(answer, _new_life(answer, FIRST_REVISION, self._key, earlier, self._stamp, current))

    def _first_result(self, replayed: AppliedRequest, record: Record) -> Action:
        if replayed.revision == FIRST_REVISION:
            return first_life(self.request.action, self.action_id, replayed.guid, us_of(replayed.time))
        return _what_remains(replayed, record)

    def _proposal(self, answer: Action, put: Put) -> Proposal:
        return answer, None if self.request.validate_only else put


class Delete:
    """The answer shows the tombstone; users get an empty one."""

    blind = False

    def __init__(self, request: DeleteActionRequest, stamp: Stamp, retention_us: int) -> None:
        self.action_id = request.id
        self.request = request
        self._key = key_of(request)
        self._stamp = stamp
        self._retention_us = retention_us

    def propose(self, current: Action | None) -> Proposal:
        record = None if current is None else _decoded_or_salvaged(current)
        if record is not None and recognised(self._key, record.applied) is not None:
            return encoded(record.action), None
        if current is None or record is None or record.is_deleted:
            if self.request.allow_missing:
                return _NOBODY, None
            raise NotFound(self.action_id)
        _check_etag(self.request.etag, record)
        tombstone = record.action
        _next_revision(tombstone.meta, self._stamp)
        _new_guid(tombstone.meta, self._stamp)
        _apply(tombstone, Deleted(self._retention_us), self._stamp.now_us)
        # Nobody will ask for them again, and a user who deletes expects them to be gone.
        tombstone.ClearField("spec")
        tombstone.meta.ClearField("labels")
        answer = encoded(tombstone)
        if self.request.validate_only:
            return answer, None
        return answer, _new_life(answer, tombstone.meta.revision, self._key, record.applied, self._stamp, current)


class Command:
    """Pause, resume and run: the spec stays, the status changes by an event."""

    blind = False

    def __init__(self, request: PauseActionRequest | ResumeActionRequest | RunActionRequest, stamp: Stamp) -> None:
        self.action_id = request.id
        self.request = request
        self._event, self._participle = _COMMANDS[type(request)]
        self._key = key_of(request)
        self._stamp = stamp

    def propose(self, current: Action | None) -> Proposal:
        record = None if current is None else decoded(current)
        replayed = None if record is None else recognised(self._key, record.applied)
        if record is not None and replayed is not None:
            return _what_remains(replayed, record), None
        if current is None or record is None or record.is_deleted:
            raise NotFound(self.action_id)
        _check_etag(self.request.etag, record)
        action = record.action
        _next_revision(action.meta, self._stamp)
        _new_guid(action.meta, self._stamp)
        try:
            _apply(action, self._event, self._stamp.now_us)
        except ImpossibleEvent as error:
            state = action_pb2.State.Name(action.status.state)
            raise WrongState(f"action {self.action_id!r} is {state} and cannot be {self._participle}") from error
        answer = encoded(action)
        return answer, _new_life(answer, action.meta.revision, self._key, record.applied, self._stamp, current)


_COMMANDS: dict[type, tuple[Event, str]] = {
    PauseActionRequest: (Paused(), "paused"),
    ResumeActionRequest: (Resumed(), "resumed"),
    RunActionRequest: (RunRequested(), "run"),
}


def _check_spec(spec: Spec) -> None:
    violations = spec_violations(spec)
    if violations:
        raise InvalidArgument(violations)


def _check_etag(etag: str, record: Record) -> None:
    if etag and etag != record.action.meta.etag:
        raise EtagMismatch(record.action.meta.id)


def _next_revision(meta: Meta, stamp: Stamp) -> None:
    meta.revision += 1
    meta.etag = etag_of(meta.guid, meta.revision)
    set_us(meta.update_time, stamp.now_us)


def _new_guid(meta: Meta, stamp: Stamp) -> None:
    meta.guid = stamp.guid
    meta.etag = etag_of(stamp.guid, meta.revision)


def _apply(action: ScheduledAction, event: Event, now_us: int) -> None:
    """Let an event happen to the action."""
    status, at_us = step(action.spec, action.status, event, Moment(now_us))
    action.status.CopyFrom(status)
    if at_us is None:
        # Only a worker removes an action: its row comes due at once, and the worker finds that it has ended.
        set_us(action.status.scheduled_time, now_us)


def _new_life(
    answer: Action, revision: int, key: CallKey | None, earlier: Applied, stamp: Stamp, seen: Action | None
) -> Put:
    stored = remembering(key, answer, revision, earlier, stamp.now_us)
    if seen is not None:
        # Were it gone before the last retry of an earlier life's call, that call would find nothing in its way.
        stored = removable_from(stored, stamp.now_us + DELETED_RETENTION_MIN_US)
    return Put(seen, stored, stamp.shard_id, stamp.now_us)


def _same_life(answer: Action, revision: int, key: CallKey | None, earlier: Applied, stamp: Stamp, seen: Action) -> Put:
    """Labels alone: guid, status and row stay."""
    stored = remembering(key, answer, revision, earlier, stamp.now_us)
    return Put(seen, seen._replace(meta=stored.meta), None, stamp.now_us)


def _what_remains(replayed: AppliedRequest, record: Record) -> Action:
    """What the replay of a change is answered with: the action if that life still goes on, else who it was."""
    if record.action.meta.guid == replayed.guid:
        return encoded(record.action)
    remains = ScheduledAction()
    meta = remains.meta
    meta.id = record.action.meta.id
    meta.guid = replayed.guid
    meta.revision = replayed.revision
    meta.etag = replayed.etag
    meta.update_time.CopyFrom(replayed.time)
    return encoded(remains)


def _decoded_or_salvaged(current: Action) -> Record:
    """An action that cannot be read can still be deleted."""
    try:
        return decoded(current)
    except Damaged:
        return salvaged(current)
