"""The seam for speed: plan what to store for a list of requests, of due rows, or of ended attempts.

Each of the three functions takes a list and returns a list of the same length. The state machine can plan all of it.
Before it stands the fast path, which recognises the common case and plans it cheaply, with the same bytes as the
result. Nobody else knows that there is a fast path; without the folder `fastpath` everything works as before, more
slowly.
"""

import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from google.protobuf.message import DecodeError

from clepsydra.core.action.attempt import Attempt, LoneAttempt, attempt_id
from clepsydra.core.action.creation import ImpossibleNow, action_id_of, new_action
from clepsydra.core.action.events import Began, Decision, Event, Expired, Failed, Interrupted, Purged, Succeeded
from clepsydra.core.action.occurrence import attempt_number
from clepsydra.core.action.state_machine import Moment, Step, decide, step
from clepsydra.core.action.suspicion import runs_alone
from clepsydra.core.plan import Begin, BeginTerms, Ended, Refusal
from clepsydra.core.tables import Action, Advance, Due, Queue, Row
from clepsydra.core.times import MILLISECOND_US, duration_us, set_us, us_of
from clepsydra.core.validation.requests import CREATE
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Spec, Status
from clepsydra.v1.scheduler_pb2 import CreateActionRequest

# Tests set this to "off", to show that nothing but speed depends on the fast path.
FASTPATH_VARIABLE = "CLEPSYDRA_FASTPATH"


def _load_fastpath() -> ModuleType | None:
    """The folder may be deleted."""
    if os.environ.get(FASTPATH_VARIABLE) == "off" or find_spec("clepsydra.core.fastpath") is None:
        return None
    return import_module("clepsydra.core.fastpath")


fastpath = _load_fastpath()


def plan_creations(
    requests: Sequence[CreateActionRequest], generated_ids: Sequence[str], guids: Sequence[str], now_us: int
) -> list[Action | Refusal]:
    """Each request as the action that would be stored if nothing is there, or why it is refused.

    An action that is created without an id gets the generated one.
    """
    planned: list[Any]
    planned = fastpath.plan_creations(requests, generated_ids, guids, now_us) if fastpath else [None] * len(requests)
    if all(planned):
        return planned
    return [
        _plan_creation(request, generated_id, guid, now_us) if action is None else action
        for action, request, generated_id, guid in zip(planned, requests, generated_ids, guids, strict=True)
    ]


def plan_begins(rows: Sequence[Due], now_us: int, terms: BeginTerms, latest_us: int | None = None) -> list[Begin]:
    """What to write for each due row. Every row must have its action.

    `latest_us` is the upper bound of the time, from which an interval is counted; without it, `now_us` is.
    """
    planned: list[Any] = fastpath.plan_begins(rows, now_us, terms) if fastpath else [None] * len(rows)
    if all(planned):
        return planned
    return [
        _plan_begin(due, now_us, terms, latest_us or now_us) if begin is None else begin
        for begin, due in zip(planned, rows, strict=True)
    ]


def plan_ends(ended: Sequence[Ended], ended_us: int) -> list[Advance]:
    """What to write for each attempt that ended at this time, which must be one that `end_time_us` returned."""
    planned: list[Any] = fastpath.plan_ends(ended, ended_us) if fastpath else [None] * len(ended)
    if all(planned):
        return planned
    return [
        _plan_end(each, ended_us) if advance is None else advance for advance, each in zip(planned, ended, strict=True)
    ]


def end_time_us(now_us: int) -> int:
    """Attempts that end within a millisecond are recorded with one end time, rounded up."""
    return -(-now_us // MILLISECOND_US) * MILLISECOND_US


def _plan_creation(request: CreateActionRequest, generated_id: str, guid: str, now_us: int) -> Action | Refusal:
    violations = CREATE(request)
    if violations:
        return Refusal(violations, depends_on_time=False)
    try:
        return new_action(request.action, action_id_of(request, generated_id), guid, now_us)
    except ImpossibleNow as error:
        return Refusal(error.violations, depends_on_time=True)


def _plan_begin(due: Due, now_us: int, terms: BeginTerms, latest_us: int) -> Begin:
    row, action = due
    assert action is not None, "rows with old guids are dropped, not begun"
    try:
        spec, status = Spec.FromString(action.spec), Status.FromString(action.status)
    except DecodeError:
        return _set_aside(row, action, now_us, terms)
    decision = decide(spec, status, row.scheduled_at_us, now_us)
    moment = Moment(now_us, row.scheduled_at_us)
    if decision is Decision.PURGE:
        return Begin(_written(row, action, step(spec, status, Purged(), moment)), decision)
    if decision is Decision.WAIT or not spec.WhichOneof("target"):
        # A newer version wrote a state or a target that this version does not know.
        return _set_aside(row, action, now_us, terms)
    if decision is Decision.EXPIRE:
        expired_moment = Moment(latest_us, row.scheduled_at_us)
        return Begin(_written(row, action, step(spec, status, Expired(), expired_moment)), decision)
    if decision is Decision.INTERRUPT:
        return _begin_after_interruption(row, action, spec, status, moment, terms)
    began = step(spec, status, Began(terms.lease_us, terms.grace_us), moment)
    if began.status is not status:
        return _begin_alone(row, action, spec, began, moment, terms)
    attempt = _attempt(row, action, spec, began, moment, terms)
    return Begin(Advance(row, attempt.row.at_us), decision, attempt)


def _begin_after_interruption(
    row: Row, action: Action, spec: Spec, status: Status, moment: Moment, terms: BeginTerms
) -> Begin:
    """The attempt in flight never ended: count it, and begin the next one in the same advance, unless it must wait."""
    interrupted = step(spec, status, Interrupted(_interrupted_attempt(row, status, moment.now_us, terms)), moment)
    advance = _written(row, action, interrupted)
    # Suspects, which wait for their turn to run alone, and parked actions do not begin here.
    if runs_alone(spec, interrupted.status):
        return Begin(advance, Decision.INTERRUPT)
    assert advance.status is not None
    assert interrupted.at_us is not None, "an interrupted action goes on, or is parked"
    action = action._replace(status=advance.status, scheduled_at_us=interrupted.at_us)
    began = step(spec, interrupted.status, Began(terms.lease_us, terms.grace_us), moment)
    attempt = _attempt(row, action, spec, began, moment, terms)
    return Begin(advance._replace(to_us=attempt.row.at_us), Decision.INTERRUPT, attempt)


def _begin_alone(row: Row, action: Action, spec: Spec, began: Step, moment: Moment, terms: BeginTerms) -> Begin:
    """A suspect begins: its status says so before it runs."""
    status, planned_us = began.status.SerializeToString(), us_of(began.status.scheduled_time)
    advance = Advance(row, began.at_us, action.scheduled_at_us, status, planned_us)
    action = action._replace(status=status, scheduled_at_us=planned_us)
    return Begin(advance, Decision.BEGIN, _attempt(row, action, spec, began, moment, terms, LoneAttempt))


def _interrupted_attempt(row: Row, status: Status, now_us: int, terms: BeginTerms) -> action_pb2.Attempt:
    number, holder = attempt_number(status), terms.holders.get(row.action_id)
    message = action_pb2.Attempt(
        number=number,
        id=attempt_id(row.guid, us_of(status.occurrence_time), number),
        outcome=action_pb2.Attempt.INTERRUPTION,
        worker="" if holder is None else holder.worker,
        error="its outcome was never written",
    )
    moved_us = row.rescheduled_at_us or us_of(status.scheduled_time)
    set_us(message.start_time, moved_us if holder is None else holder.start_us)
    set_us(message.end_time, now_us)
    return message


def _attempt(
    row: Row,
    action: Action,
    spec: Spec,
    began: Step,
    moment: Moment,
    terms: BeginTerms,
    make: type[Attempt] = Attempt,
) -> Attempt:
    status, to_us = began
    kind = spec.WhichOneof("target")
    assert to_us is not None, "a begin moves the row"
    assert kind is not None, "an action without a target is set aside"
    return make(
        row=Row(Queue.PROCESSING, row.shard_id, to_us, row.action_id, row.guid, to_us),
        action=action,
        kind=kind,
        target=getattr(spec, kind),
        occurrence_us=us_of(status.occurrence_time),
        number=attempt_number(status),
        timeout_us=duration_us(spec.attempt_timeout),
        lease_ends_us=to_us - terms.grace_us,
        worker=terms.worker,
        spec=spec,
        status=status,
        kept_key=status.occurrence.idempotency_key,
    )


def _set_aside(row: Row, action: Action, now_us: int, terms: BeginTerms) -> Begin:
    to_us = max(now_us, row.scheduled_at_us) + terms.set_aside_us
    return Begin(Advance(row, to_us, action.scheduled_at_us), None)


def _plan_end(ended: Ended, ended_us: int) -> Advance:
    attempt, result, fraction = ended
    message = attempt.to_message(result, ended_us)
    event: Event
    if result.outcome == action_pb2.Attempt.SUCCESS:
        event = Succeeded(message)
    elif result.outcome == action_pb2.Attempt.INTERRUPTION:
        # The worker itself says so: it lives, and no action is suspected of having killed it.
        event = Interrupted(message, is_suspicious=False)
    else:
        event = Failed(message, result.retryable, result.retry_after_us)
    moment = Moment(ended_us, attempt.row.at_us, fraction)
    return _written(attempt.row, attempt.action, step(attempt.spec, attempt.status, event, moment))


def _written(row: Row, action: Action, after: Step) -> Advance:
    """An advance that also writes the status, or removes the action if nothing is left to keep."""
    if after.at_us is None:
        return Advance(row, None, action.scheduled_at_us)
    return Advance(row, after.at_us, action.scheduled_at_us, after.status.SerializeToString(), after.at_us)
