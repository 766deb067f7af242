"""What to do with each row whose time has come: one advance, and the attempt that it begins, if any."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from google.protobuf.message import DecodeError

from clepsydra.core.events import Began, Expired, Interrupted, Purged, Turn
from clepsydra.core.moments import MILLISECOND_US, duration_us, set_us, us_of
from clepsydra.core.transitions import (
    KEPT,
    Moment,
    Step,
    attempt_id,
    attempt_number,
    step,
    turn_of,
)
from clepsydra.core.usual import TIMEOUT_US
from clepsydra.store.port import Action, Advance, Due, Queue, Row
from clepsydra.store.tuples import advance_of, row_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import PythonHandler, Spec, Status
from clepsydra.worker.attempt import Attempt
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.usual import usual_request


class Taken(NamedTuple):
    """A turn that is to be written; `turn` is None for an action that cannot be decoded and is set aside."""

    advance: Advance
    turn: Turn | None
    attempt: Attempt | None = None


taken_of: Callable[[tuple[Advance, Turn, Attempt]], Taken] = partial(tuple.__new__, Taken)

# A member of an enum is looked up at some cost, and this is done for every action that is executed.
_BEGIN, _PURGE, _PROCESSING = Turn.BEGIN, Turn.PURGE, Queue.PROCESSING


class Turns:
    """Takes turns on behalf of one worker."""

    def __init__(self, settings: WorkerSettings, worker: str) -> None:
        self._began = Began(settings.lease_us, settings.grace_us)
        self._grace_us = settings.grace_us
        self._usual_lease_us = min(TIMEOUT_US, settings.lease_us) + settings.grace_us
        self._set_aside_us = settings.set_aside_ms * MILLISECOND_US
        self._worker = worker

    def take(self, due: Due, now_us: int) -> Taken:
        row, action = due
        assert action is not None, "rows with old guids are dropped, not executed"
        usual = usual_request(row, action)
        if usual is not None:
            return self._begin_usual(row, action, *usual, now_us)
        try:
            spec, status = Spec.FromString(action.spec), Status.FromString(action.status)
        except DecodeError:
            return self._set_aside(row, action, now_us)
        turn = turn_of(spec, status, row.scheduled_at_us, now_us)
        if turn is not _PURGE and not spec.WhichOneof("target"):
            # Written by a newer version, with a target that this one does not know.
            return self._set_aside(row, action, now_us)
        if turn is _BEGIN:
            return self._begin(row, action, spec, status, now_us)
        if turn is Turn.INTERRUPT:
            return self._interrupt(row, action, spec, status, now_us)
        if turn is Turn.EXPIRE:
            expired = step(spec, status, Expired(), Moment(now_us, row.scheduled_at_us))
            return Taken(_written(row, action, expired), turn)
        if turn is Turn.PURGE:
            purged = step(spec, status, Purged(), Moment(now_us, row.scheduled_at_us))
            return Taken(_written(row, action, purged), turn)
        # A state that this version does not know, written by a newer one.
        return self._set_aside(row, action, now_us)

    def _begin_usual(self, row: Row, action: Action, request: PythonHandler, planned: bytes, now_us: int) -> Taken:
        """What `_begin` comes to at the first attempt of the usual kind."""
        planned_us = action.scheduled_at_us
        starts_us = max(now_us, planned_us)
        to_us = starts_us + self._usual_lease_us
        lease_ends_us, deadline_us = to_us - self._grace_us, starts_us + TIMEOUT_US
        attempt = Attempt(
            _moved(row, to_us), action, request, planned, planned_us, 1, deadline_us, lease_ends_us, self._worker
        )
        return taken_of((advance_of((row, to_us, None, None, None)), _BEGIN, attempt))

    def _begin(self, row: Row, action: Action, spec: Spec, status: Status, now_us: int) -> Taken:
        to_us = step(spec, status, self._began, Moment(now_us, row.scheduled_at_us)).at_us
        assert to_us is not None
        attempt = self._attempt(row, action, spec, status, to_us, now_us)
        return Taken(advance_of((row, to_us, None, None, None)), _BEGIN, attempt)

    def _interrupt(self, row: Row, action: Action, spec: Spec, status: Status, now_us: int) -> Taken:
        """The attempt that was in flight never ended: count it, and begin the next one in the same advance."""
        moment = Moment(now_us, row.scheduled_at_us)
        number = attempt_number(status)
        record = action_pb2.Attempt(
            number=number,
            id=attempt_id(row.guid, us_of(status.occurrence_time), number),
            outcome=action_pb2.Attempt.INTERRUPTION,
            error="its outcome was never written",
        )
        set_us(record.start_time, row.rescheduled_at_us or us_of(status.scheduled_time))
        set_us(record.end_time, now_us)
        interrupted = step(spec, status, Interrupted(record), moment)
        if interrupted.status.state in KEPT or interrupted.at_us is None:
            return Taken(_written(row, action, interrupted), Turn.INTERRUPT)
        to_us = step(spec, interrupted.status, self._began, moment).at_us
        assert to_us is not None
        advance = _written(row, action, interrupted)
        assert advance.status is not None
        action = action._replace(status=advance.status, scheduled_at_us=interrupted.at_us)
        attempt = self._attempt(row, action, spec, interrupted.status, to_us, now_us)
        return Taken(advance._replace(to_us=to_us), Turn.INTERRUPT, attempt)

    def _attempt(self, row: Row, action: Action, spec: Spec, status: Status, to_us: int, now_us: int) -> Attempt:
        deadline_us = max(now_us, row.scheduled_at_us) + duration_us(spec.attempt_timeout)
        return Attempt(
            row=_moved(row, to_us),
            action=action,
            request=spec.handler if spec.HasField("handler") else None,
            planned=None,
            occurrence_us=us_of(status.occurrence_time),
            number=attempt_number(status),
            deadline_us=deadline_us,
            lease_ends_us=to_us - self._grace_us,
            worker=self._worker,
        )

    def _set_aside(self, row: Row, action: Action, now_us: int) -> Taken:
        to_us = max(now_us, row.scheduled_at_us) + self._set_aside_us
        return Taken(Advance(row, to_us, action.scheduled_at_us), None)


def _moved(row: Row, to_us: int) -> Row:
    """Where the row lies while the attempt runs."""
    _, shard_id, _, action_id, guid, _, _ = row
    return row_of((_PROCESSING, shard_id, to_us, action_id, guid, to_us, None))


def _written(row: Row, action: Action, after: Step) -> Advance:
    """An advance that also writes the status, or removes the action if nothing is left to keep."""
    if after.at_us is None:
        return Advance(row, None, action.scheduled_at_us)
    return Advance(row, after.at_us, action.scheduled_at_us, after.status.SerializeToString(), after.at_us)
