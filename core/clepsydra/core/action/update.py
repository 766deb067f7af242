"""What an update of its spec does to an action.

Only a change of the schedule plans the action afresh. A change of the target keeps the plan (state, occurrence,
retries, counters) in a new life. Any other change (retention, retry policy, timeouts) keeps guid, status and row. Specs
are compared with their defaults filled in, so a value that is given again is no change.
"""

from typing import Any, NamedTuple

from clepsydra.core.action.creation import accept
from clepsydra.core.action.events import Event, Paused, TargetChanged
from clepsydra.core.action.occurrence import carry_over
from clepsydra.core.action.spec import fill_in, fill_in_recurrence
from clepsydra.core.action.state_machine import Moment, step
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Schedule, ScheduledAction, Spec, Status

_PlanEffect = ScheduledAction.PlanEffect


class Updated(NamedTuple):
    """The status of an action with its new spec, and what became of its plan."""

    status: Status
    effect: ScheduledAction.PlanEffect


def update_plan(stored: Spec, spec: Spec, status: Status, guid: str, now_us: int) -> Updated:
    """Fill in the defaults of the new spec, and plan. Raises ImpossibleNow.

    `guid` is the life that the status belongs to.
    """
    before = Spec()
    before.CopyFrom(stored)
    # An older version may have stored it with fewer defaults.
    fill_in(before, now_us)
    if spec.schedule.WhichOneof("start") == "start_time" and _is_same_schedule(spec.schedule, before.schedule):
        return _keep(before, spec, status, guid, now_us)
    fresh, _ = accept(spec, now_us)
    if status.state == action_pb2.PAUSED:
        # A user who changes when the action runs has not asked to resume it.
        fresh = _after(spec, fresh, Paused(), now_us)
    return Updated(fresh, _PlanEffect.PLANNED_AFRESH)


def keep_start(given: Schedule, stored: Schedule) -> None:
    """A schedule without a start that is otherwise as the stored one is the stored one: it does not start over now."""
    if given.WhichOneof("start") is None:
        completed = Schedule()
        completed.CopyFrom(given)
        completed.start_time.CopyFrom(stored.start_time)
        if _is_same_schedule(completed, stored):
            given.start_time.CopyFrom(stored.start_time)


def _is_same_schedule(given: Schedule, stored: Schedule) -> bool:
    completed = Schedule()
    completed.CopyFrom(given)
    fill_in_recurrence(completed)
    return bool(completed == stored)


def _keep(before: Spec, spec: Spec, status: Status, guid: str, now_us: int) -> Updated:
    fill_in(spec, now_us)
    if _target(spec) == _target(before):
        return Updated(status, _PlanEffect.KEPT)
    kept = Status()
    kept.CopyFrom(status)
    carry_over(kept, guid, now_us)
    return Updated(_after(spec, kept, TargetChanged(), now_us), _PlanEffect.KEPT_IN_NEW_LIFE)


def _after(spec: Spec, status: Status, event: Event, now_us: int) -> Status:
    return step(spec, status, event, Moment(now_us)).status


def _target(spec: Spec) -> tuple[str | None, Any]:
    kind = spec.WhichOneof("target")
    return kind, None if kind is None else getattr(spec, kind)
