"""What became of a run: nothing, or the first promise that was broken."""

import asyncio

from tests.simulation.history import History


class Violation(Exception):
    """A promise was broken."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"broken: {promise}. {what}")
        self.promise = promise
        self.what = what


class Verdict:
    def __init__(self, history: History) -> None:
        self._history = history
        self.violation: Violation | None = None
        self.is_broken = asyncio.Event()
        # Once the run has been judged, what is left of it may do as it likes.
        self.is_final = False

    def violated(self, promise: str, what: str) -> None:
        if self.is_final:
            return
        self._history.note("oracle", "VIOLATION", promise, what)
        if self.violation is None:
            self.violation = Violation(promise, what)
            self.is_broken.set()
