"""An attempt that runs: the task that executes it, and the context that its handler sees."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from clepsydra.core.action.attempt import Attempt, Result

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Context:
    """The attempt, as a handler or an HTTP target sees it.

    `idempotency_key` is the same for every attempt at one occurrence of the action, even if the action is paused,
    resumed or given another target meanwhile: a target that remembers it can tell a repetition from new work.

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


class SharedCall:
    """One call of a target that executes these many attempts."""

    __slots__ = ("_left", "attempts")

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self._left = attempts

    def ends_with_one_less(self) -> bool:
        self._left -= 1
        return self._left == 0


class RunningAttempt:
    # In the loop that executes it: the task, from its start to its end. The engine's loop must not touch it.
    task: asyncio.Task[None] | None = None
    # The attempts that one call of a target executes, this one included, except those that were cancelled.
    group: "dict[RunningAttempt, None] | None" = None
    # None: its call executes no other attempt.
    call: SharedCall | None = None
    # Set while the lease is being extended: the row is moving, so the attempt must not be finished.
    extension: "asyncio.Future[None] | None" = None
    # The result of an attempt that was cancelled, and when it is given up if it has not ended by then.
    cancelled_with: Result | None = None
    gives_up_us = 0
    # When this process noticed that its lease has ended; 0 if it has not.
    lease_over_us = 0
    # It has not started: its lease is extended first, and its timeout does not count yet.
    awaits_lease = False
    # Its outcome is known and nothing can cancel it any more.
    has_ended = False
    _context: Context | None = None

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt

    @property
    def context(self) -> Context:
        """Made when it is first used, because not every handler takes one."""
        if self._context is None:
            attempt = self.attempt
            action = attempt.action
            made = Context(
                action_id=action.action_id,
                attempt_id=attempt.id,
                attempt_number=attempt.number,
                idempotency_key=attempt.idempotency_key,
                occurrence_us=attempt.occurrence_us,
                scheduled_us=action.scheduled_at_us,
                deadline_us=attempt.deadline_us,
                worker=attempt.worker,
            )
            # Two threads may come here at once, and must see the same one.
            context: Context = self.__dict__.setdefault("_context", made)
            return context
        return self._context


# Attempts that one call of a target executes.
Group = Sequence[RunningAttempt]


def is_thrown_away(error: BaseException, group: Group) -> bool:
    """Whether Python closes a coroutine that will not be continued, as at the end of an event loop.

    Otherwise the handler itself has raised a `GeneratorExit`, in the task that executes it.
    """
    if not isinstance(error, GeneratorExit):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return True
    return all(running.task is not task for running in group)


def _at(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)
