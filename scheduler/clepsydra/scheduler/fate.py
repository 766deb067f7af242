"""What becomes of a call: what each answer of the store means for it.

One rule rules the others: after one try of unknown outcome, only the very same `Put` is tried again, and every later
failure, a failed precondition included, is "unknown"; for the first try may have taken effect, and what the store shows
now may be what came after it. Only the call's own marks prove that it was done: its guid, which the store recognises,
or its request id among the calls that the action remembers.
"""

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.validation import violations_of
from clepsydra.scheduler import errors
from clepsydra.scheduler.changes import Change, Create
from clepsydra.scheduler.errors import SchedulerError
from clepsydra.scheduler.patience import TRIES
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.port import Action, Put, PutOutcome, PutResult

# A fast periodic action changes many times a second; each conflict brings its newest state along.
CONFLICTS_MAX = 50

# A member of an enum is looked up at some cost, and this one is asked for with every call.
_DONE = PutOutcome.DONE

Outcome = Action | SchedulerError


class Call:
    """One change on its way into the store."""

    # None while it is on its way.
    outcome: Outcome | None = None
    put: Put | None = None
    # Whether the store must be looked at before anything can be proposed.
    needs_look = False
    # In a row, of the store; they ask for a pause before the next try.
    failures = 0
    _answer: Action | None = None
    _conflicts = 0
    _unknown = False

    def __init__(self, change: Change, deadline_us: int | None) -> None:
        self.change = change
        self.deadline_us = deadline_us

    @classmethod
    def under_way(cls, change: Change, deadline_us: int | None, put: Put) -> "Call":
        """One that was put before it was a call of its own, and is answered by what it put."""
        call = cls(change, deadline_us)
        call._answer, call.put = put.action, put
        return call

    def begin(self) -> None:
        """Refuse what can never be done, and propose what needs no look: most creations expect to find nothing."""
        violations = violations_of(self.change.request)
        if violations:
            self.outcome = errors.InvalidArgument(violations)
            return
        if self.change.blind:
            self.propose(None)
        if not self.change.blind or isinstance(self.outcome, errors.InvalidArgument):
            # A replay is answered as the first call was, even if by now the request would be refused.
            self.outcome, self.needs_look = None, True

    def begin_usual(self) -> None:
        """The same for a creation with the usual fields."""
        assert isinstance(self.change, Create), "only creations are of the usual kind"
        proposal = self.change.propose_usual()
        if proposal is None:
            self.begin()
        else:
            self._answer, self.put = proposal

    def propose(self, current: Action | None) -> None:
        self.needs_look = False
        try:
            self._answer, self.put = self.change.propose(current)
        except SchedulerError as error:
            self.outcome = error
            return
        if self.put is None:
            self.outcome = self._answer

    def hear(self, result: PutResult | StoreError, now_us: int) -> None:
        """Take in how the last try ended."""
        if isinstance(result, PutResult):
            self._hear_store(result)
        else:
            self._hear_failure(result, now_us)

    def settled(self) -> Outcome:
        """The outcome of a call that was carried out."""
        assert self.outcome is not None, "a call that was carried out has an outcome"
        return self.outcome

    def fail(self, error: SchedulerError) -> None:
        if self._unknown:
            self.outcome = errors.OutcomeUnknown(
                f"the call may have taken effect: repeat it with the same request_id to be sure (at last, {error})"
            )
        else:
            self.outcome = error

    def _hear_store(self, result: PutResult) -> None:
        self.failures = 0
        if result.outcome is _DONE:
            self.outcome = self._answer
        elif result.outcome is PutOutcome.TOO_LATE:
            self.fail(errors.StoreUnavailable("the call was on its way to the store for too long: try it again"))
        elif self._unknown:
            self._look_for_own_marks(result.current)
        else:
            self._conflicts += 1
            self.propose(result.current)
            if self.outcome is None and self._conflicts >= CONFLICTS_MAX:
                self.fail(errors.StoreUnavailable("the action changes faster than this call can: try it again"))

    def _look_for_own_marks(self, current: Action | None) -> None:
        try:
            answer, put = self.change.propose(current)
        except SchedulerError as error:
            self.fail(error)
            return
        if put is None:
            self.outcome = answer
        else:
            self.fail(errors.StoreUnavailable("the action is another by now"))

    def _hear_failure(self, error: StoreError, now_us: int) -> None:
        assert self.put is not None, "only what was put is heard of"
        self.failures += 1
        if isinstance(error, OutcomeUnknown):
            self._unknown = True
        repeatable = isinstance(error, OutcomeUnknown | Unavailable)
        patience_is_left = self._unknown or self.failures < TRIES
        if not repeatable or not patience_is_left or now_us - self.put.created_at_us >= CALL_RETRY_US:
            self.fail(errors.StoreUnavailable(f"the store is not available, and nothing was done: {error}"))
