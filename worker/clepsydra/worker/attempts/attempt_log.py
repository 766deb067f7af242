"""One line in the log for each attempt that ended, always with the same keys.

    debug      it succeeded
    info       it is tried again, or its outcome was not accepted
    warning    it failed for good, and `reason` says why nothing is tried again

`next` is the time for which its action is planned next. The traceback of an exception belongs to the line of the first
attempt that it ended.
"""

import contextlib
import logging
from typing import Any

from structlog.typing import FilteringBoundLogger

from clepsydra.core.action.attempt import Attempt, Result
from clepsydra.core.times import MILLISECOND_US, us_of
from clepsydra.core.wording import rfc3339
from clepsydra.store.port import Advance
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status
from clepsydra.worker.targets.hosts import host_of

_PLANNED = frozenset({action_pb2.SCHEDULED, action_pb2.RETRYING})


class AttemptLog:
    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        # There are many successes: they are not formatted unless they are logged.
        self.shows_successes = log.is_enabled_for(logging.DEBUG)

    def _write(self, level: int, event: str, fields: dict[str, Any]) -> None:
        # A log that cannot be written must not end the worker.
        with contextlib.suppress(Exception):
            self._log.log(level, event, **fields)

    def succeeded(self, attempt: Attempt, result: Result, advance: Advance, ended_us: int) -> None:
        self._write(logging.DEBUG, "an attempt succeeded", _fields(attempt, result, _status(advance), ended_us))

    def failed(self, attempt: Attempt, result: Result, advance: Advance, ended_us: int) -> None:
        """It failed, timed out, or was interrupted."""
        status = _status(advance)
        fields = _fields(attempt, result, status, ended_us)
        if result.cause is not None:
            fields["exc_info"] = result.cause
        what = "was interrupted" if result.outcome == action_pb2.Attempt.INTERRUPTION else "failed"
        if status.state != action_pb2.RETRYING:
            fields["reason"] = status.reason or _why_not_again(result)
        self._write(
            logging.INFO if status.state == action_pb2.RETRYING else logging.WARNING, f"an attempt {what}", fields
        )

    def superseded(self, attempt: Attempt, result: Result, ended_us: int) -> None:
        event = "an outcome was not accepted: the action was changed or taken over meanwhile"
        fields = _fields(attempt, result, None, ended_us) | {"outcome": "superseded"}
        self._write(logging.INFO, event, fields)


def _status(advance: Advance) -> Status:
    """The status that was written; one without a state if the action was removed."""
    return Status() if advance.status is None else Status.FromString(advance.status)


def _why_not_again(result: Result) -> str:
    """Where no status keeps it: a periodic action has gone on, or the action was removed."""
    return "no attempt is left for this occurrence" if result.retryable else result.error


def _fields(attempt: Attempt, result: Result, status: Status | None, ended_us: int) -> dict[str, Any]:
    return {
        "action": attempt.action.action_id,
        "attempt": attempt.id,
        "number": attempt.number,
        "kind": attempt.kind,
        "target": _target(attempt),
        "outcome": action_pb2.Attempt.Outcome.Name(result.outcome).lower(),
        "duration_ms": (ended_us - attempt.started_us) // MILLISECOND_US,
        "lateness_ms": (attempt.started_us - attempt.action.scheduled_at_us) // MILLISECOND_US,
        "error": result.error,
        "next": _next(status),
    }


def _target(attempt: Attempt) -> str:
    """The handler's name, or the host; not the whole URL, which may hold secrets."""
    if attempt.kind == "handler":
        return str(attempt.target.name)
    return host_of(attempt.target.url) if attempt.kind == "http" else ""


def _next(status: Status | None) -> str | None:
    if status is None or status.state not in _PLANNED:
        return None
    return rfc3339(us_of(status.scheduled_time))
