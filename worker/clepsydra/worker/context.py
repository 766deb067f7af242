"""What an execution is told about itself."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Context:
    """The attempt, as a handler or an HTTP target sees it.

    `idempotency_key` is the same for every attempt at one occurrence of one life of the action: a target that
    remembers it can tell a repetition from new work.

    `cancelled` becomes true when the attempt is given up: its deadline has passed, its lease was lost, or its worker
    stops. A coroutine is told by a `CancelledError` as well. A thread cannot be stopped from outside: a handler that
    runs in one and may take long looks at `cancelled` from time to time and returns, because nothing that it does
    from then on counts, and another attempt may already be under way.
    """

    __slots__ = (
        "action_id",
        "attempt_id",
        "attempt_number",
        "cancelled",
        "deadline_us",
        "idempotency_key",
        "occurrence_us",
        "scheduled_us",
        "worker",
    )

    def __init__(
        self,
        *,
        action_id: str,
        attempt_id: str,
        attempt_number: int,
        idempotency_key: str,
        occurrence_us: int,
        scheduled_us: int,
        deadline_us: int,
        worker: str,
    ) -> None:
        self.action_id = action_id
        self.attempt_id = attempt_id
        self.attempt_number = attempt_number
        self.idempotency_key = idempotency_key
        self.occurrence_us = occurrence_us
        self.scheduled_us = scheduled_us
        self.deadline_us = deadline_us
        self.worker = worker
        self.cancelled = False

    @property
    def occurrence_time(self) -> datetime:
        """When the work was due first; retries keep it."""
        return _at(self.occurrence_us)

    @property
    def scheduled_time(self) -> datetime:
        """When this attempt was planned for."""
        return _at(self.scheduled_us)

    @property
    def deadline(self) -> datetime:
        """When this attempt is cancelled."""
        return _at(self.deadline_us)


class Told(Protocol):
    """An execution that can be told about itself. Not every handler asks, so the context is made when one does."""

    @property
    def context(self) -> Context: ...


class Known(NamedTuple):
    """One whose context is at hand."""

    context: Context


def _at(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
