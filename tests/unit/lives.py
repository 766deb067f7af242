"""One action as a store and its workers would lead it, so that a test reads as a story.

`Life` keeps what the store keeps (the status, and the time of the row) and asks `step` and nothing else.
"""

from clepsydra.core.action.events import (
    Accepted,
    Began,
    Decision,
    Deleted,
    Event,
    Expired,
    Failed,
    Interrupted,
    Paused,
    Purged,
    Resumed,
    RunRequested,
    Succeeded,
    TargetChanged,
)
from clepsydra.core.action.occurrence import attempt_number, carry_over, idempotency_key
from clepsydra.core.action.state_machine import Moment, Step, decide, step
from clepsydra.core.times import SECOND_US, timestamp, us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Attempt, Counters, Spec, Status

LEASE_US = 30 * SECOND_US
GRACE_US = 5 * SECOND_US


class Life:
    def __init__(self, spec: Spec, *, accepted_us: int) -> None:
        self.spec = spec
        self.status = Status()
        self.row_at_us: int | None = None
        self._began_us = 0
        self._lives = 0
        self.accept(accepted_us)

    @property
    def state(self) -> str:
        return action_pb2.State.Name(self.status.state)

    @property
    def guid(self) -> str:
        return f"life-{self._lives}"

    @property
    def key(self) -> str:
        return idempotency_key(self.status, self.guid)

    @property
    def counters(self) -> Counters:
        return self.status.counters

    @property
    def planned_us(self) -> int:
        return us_of(self.status.scheduled_time)

    @property
    def occurrence_us(self) -> int:
        return us_of(self.status.occurrence_time)

    def decision(self, now_us: int) -> Decision:
        assert self.row_at_us is not None
        return decide(self.spec, self.status, self.row_at_us, now_us)

    # What users do: each of these makes a new row.

    def accept(self, now_us: int, spec: Spec | None = None) -> None:
        self.spec = spec or self.spec
        self._start_life(Accepted(), now_us)

    def change_target(self, now_us: int) -> None:
        self._start_life(TargetChanged(), now_us)

    def pause(self, now_us: int) -> None:
        self._start_life(Paused(), now_us)

    def resume(self, now_us: int) -> None:
        self._start_life(Resumed(), now_us)

    def run_now(self, now_us: int) -> None:
        self._start_life(RunRequested(), now_us)

    def delete(self, now_us: int, retention_us: int) -> None:
        self._start_life(Deleted(retention_us), now_us)

    def _start_life(self, event: Event, now_us: int) -> None:
        status = Status()
        status.CopyFrom(self.status)
        carry_over(status, self.guid, now_us)
        self._take(step(self.spec, status, event, Moment(now_us)))
        self._lives += 1

    # What workers do: each of these moves the row.

    def begin(self, now_us: int) -> None:
        assert self.decision(now_us) is Decision.BEGIN
        self._began_us = now_us
        self._move(Began(LEASE_US, GRACE_US), now_us)

    def succeed(self, now_us: int) -> None:
        self._move(Succeeded(self._attempt(now_us, Attempt.SUCCESS)), now_us)

    def fail(self, now_us: int, *, retryable: bool = True, retry_after_us: int | None = None, error: str = "") -> None:
        attempt = self._attempt(now_us, Attempt.FAILURE)
        attempt.error = error
        self._move(Failed(attempt, retryable, retry_after_us), now_us)

    def interrupt(self, now_us: int) -> None:
        assert self.decision(now_us) is Decision.INTERRUPT
        self._move(Interrupted(self._attempt(now_us, Attempt.INTERRUPTION)), now_us)

    def stop(self, now_us: int) -> None:
        """Its worker was stopped, and wrote that itself."""
        self._move(Interrupted(self._attempt(now_us, Attempt.INTERRUPTION), is_suspicious=False), now_us)

    def expire(self, now_us: int) -> None:
        assert self.decision(now_us) is Decision.EXPIRE
        self._move(Expired(), now_us)

    def purge(self, now_us: int) -> None:
        assert self.decision(now_us) is Decision.PURGE
        self._move(Purged(), now_us)

    def _attempt(self, now_us: int, outcome: Attempt.Outcome) -> Attempt:
        return Attempt(
            number=attempt_number(self.status),
            start_time=timestamp(self._began_us),
            end_time=timestamp(now_us),
            outcome=outcome,
        )

    def _move(self, event: Event, now_us: int) -> None:
        self._take(step(self.spec, self.status, event, Moment(now_us, self.row_at_us)))

    def _take(self, result: Step) -> None:
        self.status, self.row_at_us = result
