"""What clients were told, held against what was committed."""

from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import ScheduledAction
from tests.simulation.ledger import Books, Standing
from tests.simulation.verdict import Verdict


class Window(NamedTuple):
    """How an action stood when a call on it began."""

    action_id: str
    lives: int
    sights: int


class Promises:
    def __init__(self, books: Books, verdict: Verdict) -> None:
        self._books = books
        self._verdict = verdict

    @property
    def occurrences(self) -> dict[str, Timestamp]:
        """The occurrences that cancellations name, by their request ids."""
        return self._books.occurrences

    def window(self, action_id: str) -> Window:
        standing = self._books.standing(action_id)
        return Window(action_id, len(standing.lives), len(standing.visible) - 1)

    def changed(self, kind: str, window: Window, answer: ScheduledAction, request_id: str) -> None:
        """A change was acknowledged, with what it made of the action."""
        life = self._books.lives.get(answer.meta.guid)
        was_written = request_id in self._books.committed or self._standing(window).lives[window.lives :]
        if life is None and was_written:
            # Changes of one action that wait together are written as one: the lives in between are never current.
            return
        if life is None or life.action_id != window.action_id:
            self._violated("what is acknowledged is committed", f"{kind} of {window.action_id}: {answer.meta.guid}")
        elif kind == "pause":
            self._stop(life.number, self._standing(window))

    def deleted(self, window: Window, request_id: str) -> None:
        committed = self._books.committed.get(request_id, [])
        lives = committed or [life for life in self._standing(window).lives[window.lives :] if life.is_deleted]
        if lives:
            # A change that was written together with the deletion may have brought the action back.
            self._stop(lives[0].number - (not lives[0].is_deleted), self._standing(window))
        elif not self._standing(window).lives[window.lives :]:
            self._violated("what is acknowledged is committed", f"the deletion of {window.action_id}")

    def cancelled(self, window: Window, answer: ScheduledAction, request_id: str) -> None:
        """A cancellation was acknowledged: nothing begins in the lives before, nor in its own if the action ended."""
        self.changed("cancel", window, answer, request_id)
        life = self._books.lives.get(answer.meta.guid)
        if life is not None:
            has_ended = answer.status.state == action_pb2.CANCELLED
            self._stop(life.number if has_ended else life.number - 1, self._standing(window))

    def refused(self, request_id: str) -> None:
        """The caller was told, each time, that nothing was done."""
        if request_id in self._books.committed:
            self._violated("what was refused is not done", f"{request_id} had taken effect when it was refused")
        self._books.refused.add(request_id)

    def read(self, window: Window, guid: str | None) -> None:
        """A read saw this life, or nothing."""
        if guid not in self._standing(window).visible[window.sights :]:
            self._violated("a read sees what is there", f"{window.action_id} as {guid}")

    def listed(self, windows: list[Window], guids: dict[str, str]) -> None:
        for window in windows:
            seen = self._standing(window).visible[window.sights :]
            if guids.get(window.action_id) not in seen:
                self._violated("a listing shows what is there", f"{window.action_id} as {guids.get(window.action_id)}")

    def _standing(self, window: Window) -> Standing:
        return self._books.standing(window.action_id)

    def _stop(self, number: int, standing: Standing) -> None:
        standing.stopped_at = max(standing.stopped_at, number)

    def _violated(self, promise: str, what: str) -> None:
        self._verdict.violated(promise, what)
