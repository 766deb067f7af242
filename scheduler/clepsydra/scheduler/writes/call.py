"""One call of a user on its way into the store: what each answer of the store means for it.

After a try of unknown outcome (see `clepsydra.store.outcomes`), only the very same put is tried again. The call then
counts as done only if the store recognises its guid, or if the action remembers its request id.
"""

from clepsydra.core.backoff import Backoff
from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import MILLISECOND_US, SECOND_US
from clepsydra.core.validation.requests import violations_of
from clepsydra.scheduler import errors
from clepsydra.scheduler.errors import SchedulerError
from clepsydra.scheduler.writes.mutations import Mutation
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.outcomes import CERTAIN
from clepsydra.store.port import Action, Put, PutOutcome, PutResult

# A store that certainly did nothing is tried this often; then the caller gets the error.
TRIES_MAX = 5
BACKOFF = Backoff(first_us=20 * MILLISECOND_US, longest_us=SECOND_US)

# A fast periodic action changes many times a second. Each conflict brings its newest state along.
CONFLICTS_MAX = 50

Outcome = Action | SchedulerError


class Call:
    # None until the call has its outcome.
    outcome: Outcome | None = None
    # What to write next, if the call was planned.
    put: Put | None = None
    # Failures of the store in a row; they ask for a pause before the next try.
    failures = 0
    conflicts = 0
    certainty = CERTAIN
    _response: Action | None = None

    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation
        violations = violations_of(mutation.request)
        if violations:
            self.outcome = errors.InvalidArgument(violations)

    def planned_as(self, put: Put, response: Action) -> None:
        """The call was planned before it became an object."""
        self.put, self._response = put, response

    def plan(self, current: Action | None) -> None:
        """Plan the call from the action as the store has it."""
        try:
            self._response, self.put = self.mutation.plan(current)
        except SchedulerError as error:
            self.outcome = error
            return
        if self.put is None:
            self.outcome = self._response

    def settle(self, result: PutResult | Exception, now_us: int) -> None:
        """Take in how the last try ended."""
        if isinstance(result, PutResult):
            self._settle_answer(result)
        elif isinstance(result, StoreError):
            self._settle_failure(result, now_us)
        elif isinstance(result, SchedulerError):
            self.fail(result)
        else:
            raise result

    def settled(self) -> Outcome:
        """The outcome of a call that was carried out."""
        assert self.outcome is not None, "a call that was carried out has an outcome"
        return self.outcome

    def fail(self, error: SchedulerError) -> None:
        if self.certainty.may_be_done:
            error = errors.OutcomeUnknown(
                f"the call may have taken effect: repeat it with the same request_id to be sure (at last, {error})"
            )
        self.outcome = error

    def _settle_answer(self, result: PutResult) -> None:
        self.failures = 0
        if result.outcome is PutOutcome.DONE:
            self.outcome = self._response
        elif result.outcome is PutOutcome.TOO_LATE:
            self.fail(errors.StoreUnavailable("the call was on its way to the store for too long: try it again"))
        elif self.certainty.may_be_done:
            self._look_for_own_marks(result.current)
        else:
            self.conflicts += 1
            self.plan(result.current)
            if self.outcome is None and self.conflicts >= CONFLICTS_MAX:
                self.fail(errors.StoreUnavailable("the action changes faster than this call can: try it again"))

    def _look_for_own_marks(self, current: Action | None) -> None:
        try:
            response, put = self.mutation.plan(current)
        except SchedulerError as error:
            self.fail(error)
            return
        if put is None:
            self.outcome = response
        else:
            self.fail(errors.StoreUnavailable("the action has changed since"))

    def _settle_failure(self, error: StoreError, now_us: int) -> None:
        assert self.put is not None, "only a call that was put can fail"
        self.failures += 1
        self.certainty = self.certainty.after(error)
        repeatable = isinstance(error, OutcomeUnknown | Unavailable)
        may_try_again = self.certainty.may_be_done or self.failures < TRIES_MAX
        if not repeatable or not may_try_again or now_us - self.put.created_at_us >= CALL_RETRY_US:
            self.fail(errors.StoreUnavailable(f"the store is not available, and nothing was done: {error}"))
