"""The rule of unknown outcomes, for everybody who tries a store call more than once.

After one try of unknown outcome, no later failure of that call proves that nothing was done: the first try may have
taken effect, and what the store shows now may have come after it. A failed precondition proves as little. Only the
call's own marks prove that it was done, and the store reports those as done.
"""

from collections.abc import Sequence
from typing import NamedTuple

from clepsydra.store.errors import OutcomeUnknown, StoreError
from clepsydra.store.port import AdvanceOutcome, PutOutcome, PutResult

_GONE, _UNKNOWN = AdvanceOutcome.GONE, AdvanceOutcome.UNKNOWN


class Certainty(NamedTuple):
    """Whether an earlier try of a call may have taken effect."""

    may_be_done: bool = False

    def after(self, error: StoreError) -> "Certainty":
        """What is certain after a try that failed with this."""
        return UNCERTAIN if isinstance(error, OutcomeUnknown) else self

    def failure(self, error: StoreError) -> StoreError:
        """What to tell the caller when there is no further try."""
        if not self.may_be_done or isinstance(error, OutcomeUnknown):
            return error
        return OutcomeUnknown(f"{error}; an earlier try may have taken effect, so repeat the call as it was")

    def advance_outcomes(self, outcomes: list[AdvanceOutcome]) -> list[AdvanceOutcome]:
        """A row that is gone may have been moved on from where an earlier try had put it."""
        if not self.may_be_done:
            return outcomes
        return [_UNKNOWN if outcome is _GONE else outcome for outcome in outcomes]

    def check_put_results(self, results: Sequence[PutResult]) -> None:
        """Raise if any result is not done, though an earlier try may have done it. The port has no such outcome."""
        if self.may_be_done and any(result.outcome is not PutOutcome.DONE for result in results):
            raise OutcomeUnknown(
                "an earlier try of unknown outcome may have taken effect before the action changed: repeat the call"
            )


# Before the first try of a call; and after one of unknown outcome.
CERTAIN = Certainty()
UNCERTAIN = Certainty(may_be_done=True)
