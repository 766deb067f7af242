"""What a handler can know about the attempt that it executes."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Context:
    """The attempt, as a handler or an HTTP target sees it.

    `idempotency_key` is the same for every attempt at one occurrence of one life of the action: a target that
    remembers it can tell a repetition from new work.

    `cancelled` becomes true when the attempt is given up: its deadline has passed, its lease was lost, or its worker
    stops. A coroutine also receives a `CancelledError`. A thread cannot be stopped from outside: a handler that runs in
    one and may take long should check `cancelled` from time to time and return, because its outcome no longer counts,
    and another attempt may already be under way.
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


class HasContext(Protocol):
    """Not every handler takes a context, so it is made when it is first used."""

    @property
    def context(self) -> Context: ...


def _at(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
