"""Judges a run by the promises, at every committed call and at every start of a handler, by the true time.

It keeps books of its own about what was committed, and asks the code under test for nothing but the meaning of stored
bytes. The first violation ends the run.
"""

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from clepsydra.core.action.occurrence import idempotency_key
from clepsydra.core.action.state_machine import KEPT, LIVE
from clepsydra.core.times import us_of
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Acquired, Action, Advance, AdvanceOutcome, Put, PutOutcome, PutResult, Row
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import AppliedRequest, Counters, Meta, Spec, Status
from clepsydra.worker.running import Context
from tests.simulation.attempts import AttemptRules
from tests.simulation.history import History
from tests.simulation.ledger import Books, Doing, End, Life, Standing
from tests.simulation.verdict import Verdict
from tests.simulation.weather import Weather

# As many requests an action remembers; a replay that comes after more of them is a call like any other.
_REMEMBERED = 8


class Oracle:
    def __init__(
        self, memory: MemoryStore, history: History, weather: Weather, verdict: Verdict, rules: AttemptRules
    ) -> None:
        self._memory = memory
        self._history = history
        self._weather = weather
        self._verdict = verdict
        self._rules = rules
        self.books: Books = rules.books

    def violated(self, promise: str, what: str) -> None:
        self._verdict.violated(promise, what)

    # What the store commits.

    def saw_put(self, process: str, put: Put, before: Action | None, result: PutResult) -> None:
        action = put.action
        self._history.note(process, "put", action.action_id, action.guid, action.scheduled_at_us, result.outcome.value)
        if result.outcome is PutOutcome.TOO_LATE:
            self._weather.mark("a put came too late")
        elif result.outcome is PutOutcome.CONFLICT:
            self._weather.mark("a put found a conflict")
        elif put.shard_id is None:
            self._saw_settings(put, before)
        elif before is not None and before.guid == action.guid:
            self._weather.mark("a put recognised its own guid")
        else:
            self._saw_new_life(put, before)

    def _saw_settings(self, put: Put, before: Action | None) -> None:
        """A change that starts no life: neither the plan nor the row may move."""
        action_id = put.action.action_id
        after = self._memory.actions[action_id]
        if before is None or (after.guid, after.status, after[5:]) != (before.guid, before.status, before[5:]):
            self.violated("a change of settings moves no plan", f"{action_id} was {before}, and is {after}")
        elif before.meta != after.meta:
            life = self.books.standing(action_id).life
            assert life is not None, "a put that was carried out belongs to a life"
            life.earlier_retentions.append(Spec.FromString(before.spec).retention)
            self._saw_requests(put, before, life)

    def _saw_new_life(self, put: Put, before: Action | None) -> None:
        action, seen = put.action, put.seen
        if action.guid in self.books.lives:
            self._saw_again(action, before)
        if (before and before[:3] + before[5:]) != (seen and seen[:3] + seen[5:]):
            self.violated(
                "a put compares what it has seen",
                f"{action.guid} overwrote {before and before.guid}, and had seen {seen and seen.guid}",
            )
        standing = self.books.standing(action.action_id)
        if before is None:
            # With its record an action gives up the memory of requests, late ones included.
            standing.requests.clear()
        if standing.life is not None:
            self._rules.close(standing.life, End.SUPERSEDED)
        status = Status.FromString(action.status)
        if us_of(status.scheduled_time) != action.scheduled_at_us:
            self.violated("the columns repeat the status", f"{action.action_id} is planned for another time")
        self._saw_lives_between(put, before, standing)
        if before is not None and _changes(put, before) == 1:
            self._check_cancelled(put, before, status)
        number = len(standing.lives) + 1
        deleted = status.state == action_pb2.DELETED
        life = Life(action.action_id, action.guid, number, status.counters, deleted)
        standing.lives.append(life)
        standing.visible.append(None if deleted else action.guid)
        self.books.lives[action.guid] = life
        self._saw_requests(put, before, life)
        self._check_plan(put, before, status)

    def _saw_lives_between(self, put: Put, before: Action | None, standing: Standing) -> None:
        """Changes that waited together are put as one: only the last of their lives is ever current."""
        requests = _new_requests(put, before)
        for request in requests:
            if request.guid != put.action.guid and request.guid not in self.books.lives:
                self._weather.mark("changes were put together")
                life = Life(
                    put.action.action_id, request.guid, len(standing.lives) + 1, Counters(), False, is_over=True
                )
                self.books.lives[request.guid] = life
                standing.lives.append(life)
        if _changes(put, before) != 1 or len(requests) > 1:
            standing.chains.append(len(standing.lives))

    def _check_plan(self, put: Put, before: Action | None, status: Status) -> None:
        """Updates that do not change the schedule leave what has ended, what is paused and what waits as it is."""
        requests = _new_requests(put, before)
        if before is None or not requests or _changes(put, before) != len(requests):
            return
        old = Status.FromString(before.status)
        if old.state == action_pb2.DELETED:
            return
        kinds = {self.books.kinds.get(request.request_id) for request in requests}
        if kinds <= {"label", "settings", "retarget"} and _plan_of(old) != _plan_of(status):
            self.violated("only a change of the schedule moves a plan", f"{put.action.action_id}: {old} to {status}")
        keys = idempotency_key(old, before.guid), idempotency_key(status, put.action.guid)
        if kinds <= {"label", "settings", "retarget", "pause"} and old.state not in KEPT and keys[0] != keys[1]:
            self.violated("an occurrence keeps its key", f"{put.action.action_id} had {keys[0]}, and has {keys[1]}")

    def _check_cancelled(self, put: Put, before: Action, new: Status) -> None:
        """A cancellation ends one occurrence: the one that it named, if it named one."""
        try:
            old = Status.FromString(before.status)
        except DecodeError:
            return
        count = new.counters.cancelled_occurrences - old.counters.cancelled_occurrences
        if count <= 0:
            return
        self._weather.mark("an occurrence was cancelled")
        has_ended = new.state == action_pb2.CANCELLED or us_of(new.occurrence_time) > us_of(old.occurrence_time)
        if count != 1 or old.state not in LIVE or not has_ended:
            self.violated("a cancellation ends one occurrence", f"{put.action.action_id} {old} became {new}")
        requests = _new_requests(put, before)
        named = self.books.occurrences.get(requests[-1].request_id) if requests else None
        if named is not None and named != old.occurrence_time:
            self.violated(
                "a cancellation ends the occurrence that it saw",
                f"{put.action.action_id} {named} {old.occurrence_time}",
            )

    def _saw_again(self, action: Action, before: Action | None) -> None:
        """A creation that is carried out a second time, because nothing was left that could have told.

        Only an action that was never changed may vanish before the call that made it has become too old to be retried.
        """
        first = self.books.lives[action.guid]
        if before is not None or not first.is_over or first.is_deleted:
            self.violated("a guid is never current twice", f"{action.action_id} became {action.guid} again")
        self._weather.mark("a creation was repeated after its record had gone")
        self.books.forget(action.guid)

    def _saw_requests(self, put: Put, before: Action | None, life: Life) -> None:
        for request in _new_requests(put, before):
            self._saw_request(put, before, request.request_id, self.books.lives.get(request.guid, life))

    def _saw_request(self, put: Put, before: Action | None, request_id: str, life: Life) -> None:
        """A request takes effect once, and not at all if its caller was told so."""
        standing = self.books.standing(put.action.action_id)
        if request_id in standing.requests[-_REMEMBERED:]:
            self.violated("a request takes effect at most once", f"{request_id} took effect again")
        if request_id in self.books.refused and before is not None:
            self.violated("what was refused is not done", f"{request_id} took effect after it was refused")
        standing.requests.append(request_id)
        self.books.committed.setdefault(request_id, []).append(life)

    def saw_migrate(self, process: str, rows: Sequence[Row], moved: int) -> None:
        self._history.note(process, "migrate", moved, [_told(row) for row in rows])

    def saw_drop(self, process: str, rows: Sequence[Row]) -> None:
        self._history.note(process, "drop", [_told(row) for row in rows])

    def saw_acquire(self, process: str, acquired: Acquired | None, held: set[int]) -> None:
        if acquired is not None:
            self._history.note(process, "acquire", acquired.lock.shard_id)
            if acquired.lock.shard_id in held:
                self._weather.mark("a shard lock was taken over")

    def saw_advance(
        self, process: str, advance: Advance, was_there: bool, before: Action | None, outcome: AdvanceOutcome
    ) -> None:
        row = advance.row
        self._history.note(process, "advance", _told(row), advance.to_us, outcome.value)
        if outcome is AdvanceOutcome.DONE and was_there and before is not None:
            self._saw_done(process, advance, before)
        elif outcome is AdvanceOutcome.DONE:
            self._weather.mark("an advance recognised its own mark")
        elif outcome is AdvanceOutcome.STALE:
            self._weather.mark("an advance deleted a stale row")
        elif advance.seen_scheduled_at_us is None:
            self._weather.mark("a begin found its row gone")
        else:
            self._weather.mark("a finish found its row gone")

    def _saw_done(self, process: str, advance: Advance, before: Action) -> None:
        life = self.books.lives.get(before.guid)
        if life is None or life.is_over or before.guid != advance.row.guid:
            self.violated("only a current life is advanced", f"{_told(advance.row)} moved {before.action_id}")
            return
        new = None if advance.status is None else Status.FromString(advance.status)
        if advance.to_us is None:
            self.books.standing(life.action_id).visible.append(None)
        elif new is not None and new.state == action_pb2.DELETED:
            life.is_deleted = True
            self.books.standing(life.action_id).visible.append(None)
        if life.is_damaged:
            life.is_over = advance.to_us is None
        else:
            self._judge(process, life, advance, before, new)

    def _judge(self, process: str, life: Life, advance: Advance, before: Action, new: Status | None) -> None:
        spec, old = Spec.FromString(before.spec), Status.FromString(before.status)
        if advance.to_us is None:
            self._rules.removed(process, life, advance.row, spec, old)
        elif new is None:
            self._rules.moved(process, life, advance, old)
        else:
            self._check_version(advance, before, new)
            self._rules.written(process, life, advance, spec, old, new)

    def _check_version(self, advance: Advance, before: Action, new: Status) -> None:
        planned_us = advance.status_scheduled_at_us
        if planned_us is None or planned_us <= before.scheduled_at_us or planned_us != us_of(new.scheduled_time):
            self.violated("every write of a status raises status_scheduled_at", f"{_told(advance.row)} {planned_us}")
        if advance.to_us == advance.row.at_us:
            self.violated("a row never moves to its own time", str(_told(advance.row)))

    def check_rows(self) -> None:
        """In every committed state, each action has exactly one row with its current guid."""
        actions = self._memory.actions
        live = dict.fromkeys(actions, 0)
        for _, _, _, action_id, guid in self._memory.rows:
            action = actions.get(action_id)
            if action is not None and action.guid == guid:
                live[action_id] += 1
        for action_id, rows in live.items():
            if rows != 1 and not self.books.lives[actions[action_id].guid].is_damaged:
                self.violated("each action has exactly one live row", f"{action_id} has {rows}")

    # What the handlers see.

    def saw_start(self, process: str, context: Context) -> None:
        self._history.note(process, "start", context.action_id, context.attempt_number)
        self._rules.started(process, context)

    def saw_end(self, process: str, context: Context, doing: Doing) -> None:
        self._history.note(process, "end", context.action_id, context.attempt_number, doing.value)
        attempt = self.books.attempts.get(context.attempt_id)
        if attempt is not None:
            attempt.doing = doing

    def saw_killing(self, process: str, context: Context) -> None:
        """The handler of this attempt is about to kill its process."""
        attempt = self.books.attempts.get(context.attempt_id)
        if attempt is not None:
            self.books.killers[process] = attempt

    # At the end of a run.

    def has_endless(self) -> bool:
        """Whether some action goes on for ever."""
        return any(
            _is_endless(Spec.FromString(action.spec)) and Status.FromString(action.status).state in LIVE
            for action in self._memory.actions.values()
        )

    def owed(self, now_us: int) -> list[str]:
        """What still has to happen: actions that have not ended, though they do not go on for ever, and old rows."""
        owed = []
        for action_id, action in self._memory.actions.items():
            status, spec = Status.FromString(action.status), Spec.FromString(action.spec)
            if status.state in LIVE and not (_is_endless(spec) and action.scheduled_at_us > now_us):
                owed.append(f"{action_id} is {action_pb2.State.Name(status.state)}")
            if status.state in KEPT and action.scheduled_at_us <= now_us:
                owed.append(f"{action_id} is to be purged")
        for _, _, _, action_id, guid in self._memory.rows:
            current = self._memory.actions.get(action_id)
            if current is None or current.guid != guid:
                owed.append(f"{action_id} has an old row of {guid[:6]}")
        return owed

    def check_books(self) -> None:
        """Every attempt that began has ended as exactly one thing or is in flight, and the counters say the same.

        Every action that was not removed is there.
        """
        for attempt in self.books.attempts.values():
            life = self.books.life_of(attempt.attempt_id)
            if attempt.end is None and life.in_flight is not attempt:
                self.violated("every begun attempt ends as exactly one thing", f"{attempt} has no end")
        for action_id, standing in self.books.actions.items():
            self._check_presence(action_id, standing.life)
        for action in self._memory.actions.values():
            self._check_counters(self.books.lives[action.guid], Status.FromString(action.status).counters)

    def _check_presence(self, action_id: str, life: Life | None) -> None:
        action = self._memory.actions.get(action_id)
        if life is not None and (action is None or action.guid != life.guid):
            self.violated("an action is never lost", f"{action_id} has gone, and nobody has removed it")

    def _check_counters(self, life: Life, counters: Counters) -> None:
        ends = [attempt.end for attempt in self.books.attempts.values() if attempt.attempt_id.startswith(life.guid)]
        first = life.counters
        counted = {
            End.SUCCEEDED: counters.succeeded_attempts - first.succeeded_attempts,
            End.FAILED: counters.failed_attempts - first.failed_attempts,
            End.INTERRUPTED: counters.interrupted_attempts - first.interrupted_attempts,
        }
        for end, count in counted.items():
            if ends.count(end) != count and not life.is_damaged:
                self.violated("counters add up", f"{life.action_id}: {count} {end.value}, not {ends.count(end)}")


def _new_requests(put: Put, before: Action | None) -> list[AppliedRequest]:
    """The requests that a put remembers for the first time."""
    try:
        earlier = Meta.FromString(before.meta).applied_requests if before is not None else []
    except DecodeError:
        return []
    return [each for each in Meta.FromString(put.action.meta).applied_requests if each not in earlier]


def _changes(put: Put, before: Action | None) -> int:
    """How many changes a put carries out, as far as revisions tell: a creation starts over with the first."""
    revision = Meta.FromString(put.action.meta).revision
    try:
        if before is None or Status.FromString(before.status).state == action_pb2.DELETED:
            return revision
        known = Meta.FromString(before.meta).revision
        if any(request.revision <= known for request in _new_requests(put, before)):
            # Revisions started over: it was deleted and created again within this put.
            return revision + 1
        return revision - known
    except DecodeError:
        return 1


def _plan_of(status: Status) -> tuple[object, ...]:
    """What is planned, and what has been so far. A user who changes the target clears it of a suspicion."""
    counters, occurrence = Counters(), status.occurrence
    counters.CopyFrom(status.counters)
    counters.ClearField("consecutive_interrupted_attempts")
    planned = (status.state, us_of(status.scheduled_time), us_of(status.occurrence_time))
    attempts = (occurrence.failed_attempts, occurrence.interrupted_attempts)
    return (*planned, *attempts, counters.SerializeToString(), status.reason)


def _is_endless(spec: Spec) -> bool:
    """Occurrences that expire are not counted as runs, so a deadline that is always missed makes a schedule endless."""
    return spec.schedule.HasField("periodic") and (
        not spec.schedule.periodic.max_runs or spec.HasField("start_deadline")
    )


def _told(row: Row) -> tuple[str, int, int, str, str]:
    return (row.queue.name[:3], row.shard_id, row.at_us, row.action_id, row.guid)
