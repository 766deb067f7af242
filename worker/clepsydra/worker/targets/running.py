"""An attempt that runs: the task that executes it, and the context that its handler sees."""

import asyncio
from collections.abc import Sequence

from clepsydra.core.action.attempt import Attempt, Result, idempotency_key
from clepsydra.worker.handlers.context import Context


class RunningAttempt:
    task: asyncio.Task[None] | None = None
    # The attempts that one call of a target executes, this one included, except those that were cancelled.
    group: "dict[RunningAttempt, None] | None" = None
    # Set while the lease is being extended: the row is moving, so the attempt must not be finished.
    extension: "asyncio.Future[None] | None" = None
    # The result of an attempt that was cancelled.
    cancelled_with: Result | None = None
    _context: Context | None = None

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt

    @property
    def context(self) -> Context:
        """Made when it is first used, because not every handler takes one."""
        if self._context is None:
            attempt = self.attempt
            action = attempt.action
            self._context = Context(
                action_id=action.action_id,
                attempt_id=attempt.id,
                attempt_number=attempt.number,
                idempotency_key=idempotency_key(action.guid, attempt.occurrence_us),
                occurrence_us=attempt.occurrence_us,
                scheduled_us=action.scheduled_at_us,
                deadline_us=attempt.deadline_us,
                worker=attempt.worker,
            )
        return self._context


# Attempts that one call of a target executes.
Group = Sequence[RunningAttempt]
