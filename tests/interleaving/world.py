"""A small world: two workers, one client with a few calls, and the real code that decides what they send.

Workers hold no locks here: safety must not depend on them. Time is what a row says: whoever takes a row does so at the
row's own time, so any row may come due at any moment, and every order of events has the same times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from clepsydra.core.action.attempt import SUCCESS, Attempt, Result
from clepsydra.core.lifecycle import end_time_us, plan_begins, plan_ends
from clepsydra.core.plan import Begin, BeginTerms
from clepsydra.core.times import MILLISECOND_US, SECOND_US, duration, timestamp
from clepsydra.scheduler.writes.call import Call
from clepsydra.scheduler.writes.chain import Chain
from clepsydra.scheduler.writes.commands import Cancel, Command
from clepsydra.scheduler.writes.lives import Stamp
from clepsydra.scheduler.writes.mutations import Create, Delete, Mutation, Update
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Advance, Due, Queue, Row
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Periodic, PythonHandler, RetryPolicy, Schedule, Spec
from clepsydra.v1.scheduler_pb2 import (
    CancelActionRequest,
    CreateActionRequest,
    DeleteActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    RunActionRequest,
    UpdateActionRequest,
)
from clepsydra.worker.attempts.leases import extension_of
from clepsydra.worker.attempts.pool import STOPPED
from clepsydra.worker.targets.failures import failure

EPOCH_US = 1_800_000_000 * SECOND_US
START_US = EPOCH_US + SECOND_US
LEASE_US = GRACE_US = 100 * MILLISECOND_US
_LEASE_US = LEASE_US + GRACE_US
# An attempt is extended, and ends, so long after its begin.
_EXTENDED_US = 50 * MILLISECOND_US
_ENDED_US = 60 * MILLISECOND_US
DELETED_RETENTION_US = 30 * SECOND_US

RESULTS: dict[str, Result] = {"success": SUCCESS, "failure": failure("not today"), "interruption": STOPPED}


@dataclass(frozen=True)
class Shape:
    """What a world consists of."""

    # The client's calls, as kind and action: ("create", 0), ("delete", 0).
    calls: tuple[tuple[str, int], ...]
    # Whether a call may begin before the one before it has ended.
    overlapping: bool = False
    periodic: bool = False
    # How long records are kept: 0 removes an action at its end.
    kept_us: int = 3600 * SECOND_US
    workers: int = 2
    shards: int = 1
    begins: int = 3
    crashes: int = 1
    troubles: int = 1
    extensions: int = 1
    # Whether ended and deleted actions may be purged, and whether a worker may wait before it drops an old row.
    purges: bool = False
    waits_to_drop: bool = False
    results: tuple[str, ...] = ("success", "failure")

    def name(self) -> str:
        calls = ", ".join(f"{kind} {'ab'[action]}" for kind, action in self.calls)
        traits = [
            name
            for name, has in (
                ("overlapping", self.overlapping),
                ("periodic", self.periodic),
                ("not kept", not self.kept_us),
                ("two shards", self.shards > 1),
                ("purged", self.purges),
                ("dropped late", self.waits_to_drop),
            )
            if has
        ]
        return f"{calls}{' (' + ', '.join(traits) + ')' if traits else ''}"


class Moment:
    """A clock that says what it is told."""

    def __init__(self) -> None:
        self.at_us = EPOCH_US

    def now_us(self) -> int:
        return self.at_us

    def monotonic_us(self) -> int:
        return self.at_us


class World:
    """The real decisions, each a function of what an actor has seen, remembered because they come up again and again.

    A mutation overrides one of the methods, or replaces the store.
    """

    store_class: type[MemoryStore] = MemoryStore

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.moment = Moment()
        self.store = self.store_class(shape.shards, self.moment)
        self.begin: Callable[[Due, int], Begin | None] = lru_cache(None)(self._begin)
        self.finish: Callable[[Due, int, int, str], Advance] = lru_cache(None)(self._finish)
        self.extend: Callable[[Due, int, int], Advance] = lru_cache(None)(self._extend)

    # What a worker decides.

    def _begin(self, due: Due, worker: int) -> Begin | None:
        terms = BeginTerms(f"worker-{worker}", LEASE_US, GRACE_US, set_aside_us=SECOND_US)
        [begin] = plan_begins([due], due.row.scheduled_at_us, terms)
        return begin

    def _attempt(self, due: Due, worker: int, row_at_us: int) -> Attempt:
        """The attempt that was begun from this row, whose row lies there by now."""
        begin = self._begin(due, worker)
        assert begin is not None
        attempt = begin.attempt
        assert attempt is not None
        attempt.started_us = due.row.scheduled_at_us
        row = attempt.row
        attempt.row = Row(row.queue, row.shard_id, row_at_us, row.action_id, row.guid, row_at_us)
        return attempt

    def _finish(self, due: Due, worker: int, row_at_us: int, result: str) -> Advance:
        ended_us = due.row.scheduled_at_us + _ENDED_US
        attempt = self._attempt(due, worker, row_at_us)
        [advance] = plan_ends([(attempt, RESULTS[result], 0.5)], end_time_us(ended_us))
        return advance

    def _extend(self, due: Due, worker: int, row_at_us: int) -> Advance:
        attempt = self._attempt(due, worker, row_at_us)
        return extension_of(attempt, due.row.scheduled_at_us + _EXTENDED_US, LEASE_US, GRACE_US)

    def migrated(self, due: Due) -> Due:
        """A row as a worker knows it once it has migrated it."""
        row = due.row
        at_us = row.scheduled_at_us
        return Due(Row(Queue.PROCESSING, row.shard_id, at_us, row.action_id, row.guid, at_us), due.action)

    # What a scheduler decides.

    def call(self, number: int) -> Call:
        """A call of the client, before anything has been done about it."""
        kind, action = self.shape.calls[number]
        stamp = Stamp(self.guid(number), number % self.shape.shards, self.created_at_us(number))
        name, request_id = f"{'ab'[action]}", f"request-{number}"
        if kind == "chain":
            # A life in between, and one that is current.
            first = self._mutation("retarget", name, f"{request_id}-first", stamp._replace(guid=f"f{stamp.guid[1:]}"))
            return Chain([Call(first), Call(self._mutation("update", name, request_id, stamp))])
        return Call(self._mutation(kind, name, request_id, stamp))

    def guid(self, number: int) -> str:
        return f"{number + 1:032x}"

    def created_at_us(self, number: int) -> int:
        return EPOCH_US + number * MILLISECOND_US

    def _mutation(self, kind: str, action_id: str, request_id: str, stamp: Stamp) -> Mutation:
        if kind == "create":
            create = CreateActionRequest(request_id=request_id)
            create.action.meta.id = action_id
            create.action.spec.CopyFrom(self._spec())
            return Create(create, action_id, stamp)
        if kind in _UPDATES:
            update = UpdateActionRequest(request_id=request_id, update_mask={"paths": _UPDATES[kind]})
            update.action.meta.id = action_id
            update.action.spec.CopyFrom(self._spec())
            update.action.meta.labels["changed"] = request_id
            spec = update.action.spec
            spec.handler.payload = request_id.encode()
            spec.attempt_timeout.seconds += 1
            if kind == "update":
                # A delay is always a new schedule, and this one comes to the time of all the others.
                spec.schedule.delay.CopyFrom(duration(START_US - stamp.now_us))
            return Update(update, stamp)
        if kind == "delete":
            return Delete(DeleteActionRequest(id=action_id, request_id=request_id), stamp, DELETED_RETENTION_US)
        if kind == "cancel":
            return self._cancel(CancelActionRequest(id=action_id, request_id=request_id), stamp)
        return Command(_COMMANDS[kind](id=action_id, request_id=request_id), stamp)

    def _cancel(self, request: CancelActionRequest, stamp: Stamp) -> Cancel:
        return Cancel(request, stamp)

    def _spec(self) -> Spec:
        """Every life is planned for the same time, and a retry for the end of a lease: times meet where they can."""
        spec = Spec(
            schedule=Schedule(start_time=timestamp(START_US)),
            retry=RetryPolicy(first_delay=duration(_LEASE_US - _ENDED_US), multiplier=1, jitter=0, max_attempts=3),
            attempt_timeout=duration(10 * SECOND_US),
            handler=PythonHandler(name="noop"),
        )
        spec.retention.after_success.CopyFrom(duration(self.shape.kept_us))
        spec.retention.after_failure.CopyFrom(duration(self.shape.kept_us))
        if self.shape.periodic:
            spec.schedule.periodic.CopyFrom(Periodic(interval=duration(_LEASE_US), max_runs=2))
        return spec


# What each kind of update changes: the schedule and all the rest, the target alone, or neither.
_UPDATES: dict[str, list[str]] = {
    "update": [],
    "retarget": ["spec.handler.payload"],
    "settings": ["meta.labels", "spec.attempt_timeout"],
}
_COMMANDS: dict[str, Any] = {"pause": PauseActionRequest, "resume": ResumeActionRequest, "run": RunActionRequest}

LIVE_STATES = frozenset({action_pb2.SCHEDULED, action_pb2.RETRYING})
