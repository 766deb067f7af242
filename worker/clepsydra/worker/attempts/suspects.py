"""At most one suspect at a time runs in a process, so that the death of the process incriminates only that one.

A suspect waits unbegun until the one before it has ended and its outcome is written: an outcome that dies with the
process would look like an interruption of that one.
"""

from collections.abc import Iterable

from clepsydra.core.action.attempt import Attempt
from clepsydra.worker.capacity import Capacity, Needs, Resource


class Suspects:
    def __init__(self, capacity: Capacity) -> None:
        self._alone = capacity.resource(1)
        # By the needs of the same attempt if it were not a suspect.
        self._needs: dict[Needs, Needs] = {}

    def needs(self, needs: Needs) -> Needs:
        if needs not in self._needs:
            self._needs[needs] = _NeedsAlone(needs, self._alone)
        return self._needs[needs]

    def written(self, attempts: Iterable[Attempt]) -> None:
        """The outcomes of these attempts are written."""
        if self._alone.taken:
            self._alone.give_back(sum(attempt.is_alone for attempt in attempts))


class _NeedsAlone(Needs):
    """What a call needs, and to be that of the only suspect. The latter is given back by `Suspects.written`."""

    __slots__ = ("_alone", "_needs")

    def __init__(self, needs: Needs, alone: Resource) -> None:
        super().__init__(*needs.resources, alone)
        self._needs = needs
        self._alone = alone

    def room(self) -> int:
        return min(self._needs.room(), self._alone.free)

    def lacking(self) -> Resource:
        return self._alone if self._needs.room() else self._needs.lacking()

    def take(self, attempts: int) -> None:
        self._needs.take(attempts)
        self._alone.take(attempts)

    def give_back(self, attempts: int, still_needed: int = 0) -> None:
        self._needs.give_back(attempts, still_needed)
        self._alone.give_back(attempts - still_needed)

    def take_back(self, attempts: int) -> None:
        self._needs.take_back(attempts)
        self._alone.take(-attempts)
