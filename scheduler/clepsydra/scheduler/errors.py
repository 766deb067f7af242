"""The ways in which a call can fail. Each error says what happened, to what, and what to do about it."""

from clepsydra.core.validation.rules import Violations, under


class SchedulerError(Exception):
    """A call was not carried out, or its outcome is not known."""


class InvalidArgument(SchedulerError):
    """The request itself is wrong; `violations` name the fields, as seen from the request."""

    def __init__(self, violations: Violations) -> None:
        path, description = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        super().__init__(f"{path}: {description}{more}" if path else f"the request {description}{more}")
        self.violations = violations

    def under(self, prefix: str) -> "InvalidArgument":
        """The same error, seen from a request that holds this one."""
        return InvalidArgument(under(prefix, self.violations))


class NotFound(SchedulerError):
    def __init__(self, action_id: str) -> None:
        super().__init__(f"there is no action {action_id!r}")


class AlreadyExists(SchedulerError):
    def __init__(self, action_id: str) -> None:
        super().__init__(f"an action {action_id!r} exists already: update it, or choose another id")


class EtagMismatch(SchedulerError):
    def __init__(self, action_id: str) -> None:
        super().__init__(f"action {action_id!r} has another etag by now: read it again and decide again")


class WrongState(SchedulerError):
    """The call has no meaning in the action's state."""


class OccurrenceEnded(SchedulerError):
    """The occurrence to be cancelled ended before: its outcome is kept."""


class Overloaded(SchedulerError):
    """Nothing was done, because too many calls wait already."""


class DeadlinePassed(SchedulerError):
    """Nothing was done: the caller's deadline passed before the call was sent to the store."""


class StoreUnavailable(SchedulerError):
    """The store certainly did nothing."""


class OutcomeUnknown(SchedulerError):
    """The store may have done it."""


class Damaged(SchedulerError):
    """The stored action cannot be decoded."""

    def __init__(self, action_id: str) -> None:
        super().__init__(f"what is stored of action {action_id!r} cannot be decoded: delete it and create it again")
