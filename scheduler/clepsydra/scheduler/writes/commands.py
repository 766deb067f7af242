"""Pause, resume, run and cancel: mutations that keep the spec and apply an event to the status."""

from typing import Any, NamedTuple

from clepsydra.core.action.attempt import attempt_id
from clepsydra.core.action.events import Cancelled, Event, Paused, Resumed, RunRequested
from clepsydra.core.action.occurrence import attempt_number, carry_over
from clepsydra.core.action.state_machine import ENDED, ImpossibleEvent
from clepsydra.core.times import set_us, us_of
from clepsydra.core.wording import rfc3339
from clepsydra.scheduler.codec import decode, encode
from clepsydra.scheduler.errors import NotFound, OccurrenceEnded, WrongState
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
)
from clepsydra.store.port import Action, Put
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Running, ScheduledAction
from clepsydra.v1.scheduler_pb2 import (
    CancelActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
)


class Command:
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
            return response_to_repetition(applied, stored), None
        if current is None or stored is None or stored.is_deleted:
            raise NotFound(self.action_id)
        check_etag(self.request.etag, stored)
        action = stored.action
        event = self._event_in(action)
        carry_over(action.status, action.meta.guid, self._stamp.now_us)
        next_revision(action.meta, self._stamp)
        new_guid(action.meta, self._stamp)
        try:
            apply_event(action, event, self._stamp.now_us)
        except ImpossibleEvent as error:
            state = action_pb2.State.Name(action.status.state)
            raise WrongState(f"action {self.action_id!r} is {state} and cannot be {self._participle}") from error
        response = encode(action)
        return response, self._put(response, action.meta.revision, stored.applied, current)

    def _event_in(self, _action: ScheduledAction) -> Event:
        return self._event

    def _put(self, response: Action, revision: int, earlier: Applied, seen: Action) -> Put:
        return new_life(response, revision, self._key, earlier, self._stamp, seen)


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
        if self.request.HasField("occurrence_time") and self._seen[1] > occurrence_us:
            current = f"the current occurrence of action {meta.id!r} is of {rfc3339(occurrence_us)}"
            raise WrongState(f"{current}: nothing is cancelled")
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

    def _put(self, response: Action, revision: int, earlier: Applied, seen: Action) -> Put:
        return new_life(
            response, revision, self._key, earlier, self._stamp, seen, cancelled_attempt=self.cancelled_attempt
        )


_COMMANDS: dict[type, tuple[Event, str]] = {
    PauseActionRequest: (Paused(), "paused"),
    ResumeActionRequest: (Resumed(), "resumed"),
    RunActionRequest: (RunRequested(), "run"),
    CancelActionRequest: (Cancelled(), "cancelled"),
}
