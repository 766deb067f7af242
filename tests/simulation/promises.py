"""What clients were told, held against what was committed."""

from typing import NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from clepsydra.core.action.creation import FIRST_REVISION
from clepsydra.core.clock import Clock
from clepsydra.core.times import us_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import ScheduledAction
from tests.simulation.ledger import Books, Standing
from tests.simulation.verdict import Verdict

_KEPT, _IN_NEW_LIFE = ScheduledAction.KEPT, ScheduledAction.KEPT_IN_NEW_LIFE
# What may become of the plan in an update that does not change the schedule.
_EFFECTS = {"label": {_KEPT}, "settings": {_KEPT}, "retarget": {_KEPT, _IN_NEW_LIFE}}


class Window(NamedTuple):
    """How an action stood when a call on it began, and when that was by the true time."""

    action_id: str
    lives: int
    sights: int
    began_us: int


class Promises:
    def __init__(self, books: Books, verdict: Verdict, clock: Clock, early_us: int) -> None:
        self._books = books
        self._verdict = verdict
        self._clock = clock
        # By so much a clock may drift while its process hears nothing from the store.
        self._early_us = early_us

    @property
    def occurrences(self) -> dict[str, Timestamp]:
        """The occurrences that cancellations name, by their request ids."""
        return self._books.occurrences

    def window(self, action_id: str) -> Window:
        standing = self._books.standing(action_id)
        return Window(action_id, len(standing.lives), len(standing.visible) - 1, self._clock.now_us())

    def asks(self, kind: str, request_id: str) -> None:
        """A client is about to send a request."""
        self._books.kinds[request_id] = kind

    def delayed(self, window: Window, delay_us: int, answer: ScheduledAction) -> None:
        """An action was planned to start this long after the call: by the true time, and not earlier."""
        planned_us = us_of(answer.status.scheduled_time)
        if planned_us and planned_us < window.began_us + delay_us - self._early_us:
            early_us = window.began_us + delay_us - planned_us
            self._violated(
                "no delay ends early", f"{window.action_id} is planned {early_us} us before its delay is over"
            )

    def updated(self, kind: str, window: Window, answer: ScheduledAction) -> None:
        """The answer to an update says what became of the plan."""
        effects = _EFFECTS.get(kind)
        is_new = answer.meta.revision == FIRST_REVISION
        if effects is not None and not is_new and answer.plan_effect not in effects:
            effect = ScheduledAction.PlanEffect.Name(answer.plan_effect)
            self._violated("only a change of the schedule moves a plan", f"{kind} of {window.action_id}: {effect}")

    def changed(self, kind: str, window: Window, answer: ScheduledAction, request_id: str) -> None:
        """A change was acknowledged, with what it made of the action."""
        life = self._books.lives.get(answer.meta.guid)
        if life is None and (request_id in self._books.committed or self._was_chained(window)):
            return
        if life is None or life.action_id != window.action_id:
            self._violated("what is acknowledged is committed", f"{kind} of {window.action_id}: {answer.meta.guid}")
        elif kind == "pause":
            self._stop(life.number, self._standing(window))

    def deleted(self, window: Window, request_id: str) -> None:
        committed = self._books.committed.get(request_id, [])
        lives = committed or [life for life in self._standing(window).lives[window.lives :] if life.is_deleted]
        if lives:
            self._stop(lives[0].number, self._standing(window))
        elif not self._was_chained(window):
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

    def _was_chained(self, window: Window) -> bool:
        """Whether changes without request ids have been put together since, and one of them may have been this one."""
        return any(lives >= window.lives for lives in self._standing(window).chains)

    def _standing(self, window: Window) -> Standing:
        return self._books.standing(window.action_id)

    def _stop(self, number: int, standing: Standing) -> None:
        standing.stopped_at = max(standing.stopped_at, number)

    def _violated(self, promise: str, what: str) -> None:
        self._verdict.violated(promise, what)
