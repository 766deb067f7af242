"""Changes of one action that are written as one: each is planned on the result of the one before.

The last state of the chain is written; each call has its own response, its own precondition, judged in order, and its
own record among the applied requests. The lives in between are never current, and their guids are never used again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from clepsydra.scheduler import errors
from clepsydra.scheduler.errors import SchedulerError
from clepsydra.scheduler.writes.call import Call, Outcome
from clepsydra.scheduler.writes.lives import Plan
from clepsydra.scheduler.writes.mutations import Mutation
from clepsydra.store.port import Action, Put

# The response of a chain is not sent: each call has its own.
_RESPONSE = Action("", "", b"", b"", b"", 0)


class _Link(NamedTuple):
    """One change of a chain, as it was last planned."""

    outcome: Outcome
    writes: bool
    # Whether it was planned from what the store has, and not from what an earlier change would write.
    is_certain: bool


class ChainedMutations:
    """Several mutations of one action, as one mutation."""

    def __init__(self, mutations: Sequence[Mutation]) -> None:
        self.request = None
        self.action_id = mutations[0].action_id
        self._mutations = mutations
        self.links: list[_Link] = []

    def plan(self, current: Action | None) -> Plan:
        state, joined, self.links = current, None, list[_Link]()
        for mutation in self._mutations:
            outcome: Outcome
            put: Put | None = None
            try:
                outcome, put = mutation.plan(state)
            except SchedulerError as error:
                outcome = error
            self.links.append(_Link(outcome, put is not None, joined is None))
            if put is not None:
                joined, state = _join(joined, put), put.action
        return _RESPONSE, None if joined is None else joined._replace(seen=current)


def _join(earlier: Put | None, put: Put) -> Put:
    """One put for both. If the second keeps the life that the first starts, the row of that life is still appended."""
    if earlier is None or earlier.shard_id is None or put.shard_id is not None:
        return put
    return earlier._replace(action=put.action)


class Chain(Call):
    """A call that stands for the calls of a chain, each of which is valid by itself."""

    mutation: ChainedMutations

    def __init__(self, calls: Sequence[Call]) -> None:
        self.mutation = ChainedMutations([call.mutation for call in calls])
        self._calls = calls

    def distribute(self) -> None:
        """Give each call its outcome, once the chain has one."""
        for call, outcome in zip(self._calls, self.outcomes(), strict=True):
            call.outcome = outcome

    def outcomes(self) -> list[Outcome]:
        """The outcome of each call. If the chain failed, only what does not depend on its write still holds."""
        failure = self.outcome if isinstance(self.outcome, SchedulerError) else None
        if failure is None:
            return [link.outcome for link in self.mutation.links]
        # Without a look at the store, nothing was planned.
        if not self.mutation.links:
            return [failure] * len(self._calls)
        return [link.outcome if link.is_certain and not link.writes else failure for link in self.mutation.links]

    def _look_for_own_marks(self, current: Action | None) -> None:
        """Only calls that find nothing left to write were done; the outcome of all others is unknown."""
        self.mutation.plan(current)
        text = "the call may have taken effect: repeat it with the same request_id to be sure"
        unknown = errors.OutcomeUnknown(f"{text} (the action has changed since)")
        lost = _Link(unknown, writes=False, is_certain=True)
        self.mutation.links = [
            link if link.is_certain and not link.writes and isinstance(link.outcome, Action) else lost
            for link in self.mutation.links
        ]
        self.outcome = _RESPONSE
