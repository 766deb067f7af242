"""The rules for attempts: when one may begin, what may be accepted of it, and that its counters add up."""

from clepsydra.core.action.attempt import attempt_id
from clepsydra.core.action.occurrence import attempt_number, idempotency_key
from clepsydra.core.action.state_machine import KEPT, LIVE
from clepsydra.core.clock import Clock
from clepsydra.core.times import duration_us, us_of
from clepsydra.store.port import Advance, Row
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Spec, Status
from clepsydra.worker.running import Context
from tests.simulation.ledger import BegunAttempt, Books, Doing, End, Life
from tests.simulation.verdict import Verdict
from tests.simulation.weather import Weather

_ENDS_BY_DOING = {Doing.SUCCEEDED: End.SUCCEEDED, Doing.FAILED: End.FAILED, Doing.CANCELLED: End.FAILED}

# After this many interruptions in a row an action is a suspect, whatever its own limit.
_TOGETHER = 2


class AttemptRules:
    def __init__(self, clock: Clock, weather: Weather, verdict: Verdict, early_us: int) -> None:
        self.books = Books()
        self._clock = clock
        self._weather = weather
        self._verdict = verdict
        # By so much a clock may stray between two looks at the store's clock.
        self._early_us = early_us
        # From this time on, an attempt that begins later than this after its time is a violation: what was due
        # before is due then.
        self.punctual_from_us: int | None = None
        self.late_us = 0

    def moved(self, process: str, life: Life, advance: Advance, old: Status) -> None:
        """The row was moved, the status stayed: a begin, or an extension."""
        if advance.seen_scheduled_at_us is None:
            if advance.row.scheduled_at_us != us_of(old.scheduled_time):
                self._violated("an attempt begins where the action waits", f"{life.action_id} {advance}")
            self._begun(process, life, advance.row, old)
            return
        self._weather.mark("a lease was extended")
        attempt = life.in_flight
        if attempt is None or attempt.process != process:
            self._violated("a lease is extended by whoever began the attempt", f"{life.action_id} by {process}")
        if advance.to_us is not None and advance.to_us <= advance.row.at_us:
            self._violated("within an attempt times only rise", f"{life.action_id} {advance}")

    def written(self, process: str, life: Life, advance: Advance, spec: Spec, old: Status, new: Status) -> None:
        """The status was written: an outcome, an occurrence that expired, or a tombstone in place of a record."""
        if old.state in KEPT and new.state == action_pb2.DELETED and old.counters == new.counters:
            self._weather.mark("a tombstone was left in place of a record")
            self._not_before(advance.row.scheduled_at_us, f"{life.action_id} became a tombstone")
            return
        if _begins_alone(old, new):
            self._weather.mark("a suspect ran alone")
            self._begun(process, life, advance.row, new)
            return
        if old.state in KEPT and new.state == old.state and old.counters == new.counters:
            self._not_before(advance.row.scheduled_at_us, f"{life.action_id} was looked at for its purge")
            return
        counts, counted = old.counters, new.counters
        deltas = {
            End.SUCCEEDED: counted.succeeded_attempts - counts.succeeded_attempts,
            End.FAILED: counted.failed_attempts - counts.failed_attempts,
            End.INTERRUPTED: counted.interrupted_attempts - counts.interrupted_attempts,
            None: counted.expired_occurrences - counts.expired_occurrences,
        }
        ends = [end for end, delta in deltas.items() if delta]
        if sum(map(abs, deltas.values())) != 1:
            self._violated("counters add up", f"{life.action_id}: {ends} were counted at once")
            return
        [end] = ends
        if end is None:
            self._expired(life, spec, old)
            return
        ended = life.in_flight
        self._accepted(process, life, advance.row, new.last_attempt.id, end)
        if end is End.INTERRUPTED and advance.to_us != us_of(new.scheduled_time):
            self._begun(process, life, advance.row, new)
        if new.state == action_pb2.PAUSED:
            self._parked(life, spec, old, ended)
        if new.state == action_pb2.FAILED:
            self._weather.mark("an action ended as failed")

    def _parked(self, life: Life, spec: Spec, old: Status, ended: BegunAttempt | None) -> None:
        """An action is parked only after its limit of interruptions, as the only suspect, and not for another one."""
        self._weather.mark("an action was parked")
        if not _is_alone(old) or old.counters.consecutive_interrupted_attempts + 1 < spec.interruption_limit:
            self._violated("only a lone suspect is parked", f"{life.action_id}: {old.counters}")
        killer = self.books.killers.get(ended.process) if ended is not None else None
        if killer is not None and killer is not ended and killer.is_alone:
            self._violated("no innocent action is given up", f"{life.action_id} was parked, and {killer} is to blame")

    def removed(self, process: str, life: Life, row: Row, spec: Spec, old: Status) -> None:
        """Action and row were removed: it was kept for long enough, or is not to be kept at all."""
        if old.state in KEPT:
            self._weather.mark("an action was purged")
            self._not_before(row.scheduled_at_us, f"{life.action_id} was purged")
        else:
            self._weather.mark("an action was removed at its end")
            self._ended_by_removal(process, life, row, spec, old)
        life.is_over = True

    def _ended_by_removal(self, process: str, life: Life, row: Row, spec: Spec, old: Status) -> None:
        # An attempt ends by the settings that it began with, and they may have changed since.
        retentions = [spec.retention, *life.earlier_retentions]
        success_kept = all(duration_us(retention.after_success) for retention in retentions)
        failure_kept = all(duration_us(retention.after_failure) for retention in retentions)
        attempt = life.in_flight
        if attempt is None:
            if failure_kept or not spec.HasField("start_deadline"):
                self._violated("an action is never lost", f"{life.action_id} was removed before it ran")
            self._expired(life, spec, old)
            return
        is_success = attempt.process == process and attempt.doing is Doing.SUCCEEDED
        if is_success and not success_kept:
            self._succeeded_once(attempt)
        elif failure_kept:
            self._violated("an action is never lost", f"{life.action_id} was removed, though it is to be kept")
        # Otherwise it failed, or was given up as interrupted: even a success, if its outcome could not be written.
        self.close(life, End.REMOVED)

    def started(self, process: str, context: Context) -> None:
        if self.books.life_of(context.attempt_id).is_damaged:
            return
        attempt = self.books.attempts.get(context.attempt_id)
        if attempt is None or attempt.process != process:
            self._violated("begin comes before execution", f"{context.attempt_id} started on {process} without one")
            return
        if attempt.doing is not None:
            self._violated("an attempt starts once", f"{context.attempt_id} started again")
        attempt.doing = Doing.RUNNING
        if attempt.is_alone:
            self._is_only_suspect(attempt)
        self._not_before(attempt.planned_us, f"{context.attempt_id} started")

    def _is_only_suspect(self, attempt: BegunAttempt) -> None:
        for other in self.books.attempts.values():
            is_beside = other is not attempt and other.process == attempt.process and other.doing is Doing.RUNNING
            if is_beside and other.is_alone:
                self._violated("a process runs one suspect at a time", f"{attempt} started beside {other}")

    def close(self, life: Life, end: End) -> None:
        """Whatever is in flight has ended like this."""
        if life.in_flight is not None:
            if end is End.SUPERSEDED:
                self._weather.mark("an attempt was superseded")
            life.in_flight.end = end
            life.in_flight = None

    def _begun(self, process: str, life: Life, row: Row, status: Status) -> None:
        now_us, occurrence_us = self._clock.now_us(), us_of(status.occurrence_time)
        number = attempt_id(life.guid, occurrence_us, attempt_number(status))
        if status.state not in LIVE:
            self._violated("only what waits is begun", f"{number} is {action_pb2.State.Name(status.state)}")
        if life.number <= self.books.standing(life.action_id).stopped_at:
            self._violated("nothing begins after an acknowledged delete or pause", f"{number} began")
        if number in self.books.attempts:
            self._violated("an attempt begins once", f"{number} began again")
        if life.in_flight is not None:
            self._violated("an attempt ends before the next begins", f"{number} began during {life.in_flight}")
        self._not_before(row.scheduled_at_us, f"{number} began")
        if self.punctual_from_us is not None:
            late_us = now_us - max(row.scheduled_at_us, self.punctual_from_us)
            if late_us > self.late_us:
                self._violated("lateness is bounded once all is well", f"{number} began {late_us / 1e6:.3f} s late")
        if status.counters.consecutive_interrupted_attempts >= _TOGETHER and not _is_alone(status):
            self._violated("a suspect runs alone", f"{number} began beside others")
        key = idempotency_key(status, life.guid)
        attempt = BegunAttempt(number, key, process, row.scheduled_at_us, now_us, _is_alone(status))
        self.books.attempts[number] = life.in_flight = attempt

    def _accepted(self, process: str, life: Life, row: Row, number: str, end: End) -> None:
        attempt = life.in_flight
        if attempt is None or attempt.attempt_id != number:
            self._violated("at most one outcome of an attempt is accepted", f"{end.value} for {number}, not {attempt}")
            return
        if end is End.INTERRUPTED:
            if attempt.process != process:
                self._weather.mark("an attempt was found interrupted")
                self._not_before(row.scheduled_at_us, f"{number} was taken over")
        elif attempt.process != process:
            self._violated("an outcome is written by whoever ran the attempt", f"{number} by {process}")
        elif attempt.doing is None or _ENDS_BY_DOING.get(attempt.doing) is not end:
            self._violated("an outcome is what the handler came to", f"{end.value} for {attempt}")
        if end is End.SUCCEEDED:
            self._succeeded_once(attempt)
        self.close(life, end)

    def _succeeded_once(self, attempt: BegunAttempt) -> None:
        if attempt.idempotency_key in self.books.successes:
            self._violated("an occurrence succeeds at most once", attempt.idempotency_key)
        self.books.successes.add(attempt.idempotency_key)

    def _expired(self, life: Life, spec: Spec, old: Status) -> None:
        self._weather.mark("an occurrence expired")
        if life.in_flight is not None or not spec.HasField("start_deadline"):
            self._violated("only what never started expires", f"{life.action_id} expired")
        self._not_before(us_of(old.occurrence_time) + duration_us(spec.start_deadline), f"{life.action_id} expired")

    def _not_before(self, time_us: int, what: str) -> None:
        early_us = time_us - self._clock.now_us()
        if early_us > self._early_us:
            self._violated("nothing happens before its time", f"{what} {early_us} us early")

    def _violated(self, promise: str, what: str) -> None:
        self._verdict.violated(promise, what)


def _is_alone(status: Status) -> bool:
    return status.occurrence.lone_attempt == attempt_number(status)


def _begins_alone(old: Status, new: Status) -> bool:
    """A suspect's begin writes the status, and changes nothing that is counted."""
    return old.counters == new.counters and _is_alone(new) and not _is_alone(old)
