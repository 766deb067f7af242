"""One attempt to execute an action, and how it ended."""

from dataclasses import dataclass, field
from typing import Any

from clepsydra.core.action.occurrence import key_in_life
from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.core.tables import Action, Row
from clepsydra.core.times import set_us
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Spec, Status


@dataclass(frozen=True, slots=True)
class Result:
    """What a target reports. `retry_after_us` is the delay that it asks for, in place of the retry policy's."""

    outcome: action_pb2.Attempt.Outcome
    error: str = ""
    retryable: bool = True
    retry_after_us: int | None = None
    # The exception behind it, for the log.
    cause: BaseException | None = field(default=None, compare=False, repr=False)


SUCCESS = Result(action_pb2.Attempt.SUCCESS)


def attempt_id(guid: str, occurrence_us: int, number: int) -> str:
    return f"{guid}-{occurrence_us}-{number}"


class Attempt:
    """The action is as it was when the attempt began. `row` is the fencing token: where the row lies while it runs."""

    __slots__ = (
        "_kept_key",
        "_spec",
        "_status",
        "action",
        "deadline_us",
        "kind",
        "lease_ends_us",
        "number",
        "occurrence_us",
        "row",
        "started_us",
        "target",
        "timeout_us",
        "worker",
    )

    # Whether it is that of the only suspect in its worker's hands.
    is_alone = False

    def __init__(
        self,
        row: Row,
        action: Action,
        kind: str,
        target: Any,
        occurrence_us: int,
        number: int,
        timeout_us: int,
        lease_ends_us: int,
        worker: str,
        spec: Spec | None = None,
        status: Status | None = None,
        kept_key: str = "",
    ) -> None:
        self.row = row
        self.action = action
        # The name of the target's field in the spec, and what that field holds.
        self.kind = kind
        self.target = target
        self.occurrence_us = occurrence_us
        # Within its occurrence, from 1.
        self.number = number
        # It counts from the start of execution, which is only then known.
        self.timeout_us = timeout_us
        self.deadline_us = 0
        # When it must have ended or been extended. The row lies a grace later, the time to write the outcome.
        self.lease_ends_us = lease_ends_us
        self.worker = worker
        self.started_us = 0
        self._spec = spec
        self._status = status
        # The idempotency key of an occurrence that was planned in an earlier life.
        self._kept_key = kept_key

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one occurrence, and for nothing else."""
        return self._kept_key or key_in_life(self.action.guid, self.occurrence_us)

    def start(self, now_us: int) -> None:
        """From now on it is executed."""
        self.started_us = now_us
        self.deadline_us = now_us + self.timeout_us

    @property
    def id(self) -> str:
        return attempt_id(self.action.guid, self.occurrence_us, self.number)

    @property
    def spec(self) -> Spec:
        """Decoded at most once."""
        if self._spec is None:
            self._spec = Spec.FromString(self.action.spec)
        return self._spec

    @property
    def status(self) -> Status:
        """The status under which the attempt began, decoded at most once."""
        if self._status is None:
            self._status = Status.FromString(self.action.status)
        return self._status

    def to_message(self, result: Result, ended_us: int) -> action_pb2.Attempt:
        """The attempt as the action's status keeps it."""
        message = action_pb2.Attempt(number=self.number, id=self.id, worker=self.worker, outcome=result.outcome)
        set_us(message.start_time, self.started_us)
        set_us(message.end_time, ended_us)
        if result.error:
            message.error = result.error[:ERROR_TEXT_LENGTH]
        return message


class LoneAttempt(Attempt):
    """An attempt at a suspect, which runs as the only suspect of its process."""

    __slots__ = ()
    is_alone = True
