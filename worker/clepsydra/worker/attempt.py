"""One attempt in flight: the row that is its fencing token, and what is known of it."""

import asyncio

from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.core.moments import set_us
from clepsydra.core.transitions import attempt_id, idempotency_key
from clepsydra.store.port import Action, Row
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import PythonHandler, Spec, Status
from clepsydra.worker.context import Context
from clepsydra.worker.result import Result


class Attempt:
    """The action is as it was when the attempt began; it does not change until the attempt has ended."""

    __slots__ = (
        "_context",
        "action",
        "companions",
        "deadline_us",
        "extension",
        "lease_ends_us",
        "number",
        "occurrence_us",
        "planned",
        "request",
        "row",
        "started_us",
        "task",
        "why_cancelled",
        "worker",
    )

    def __init__(
        self,
        row: Row,
        action: Action,
        request: PythonHandler | None,
        planned: bytes | None,
        occurrence_us: int,
        number: int,
        deadline_us: int,
        lease_ends_us: int,
        worker: str,
    ) -> None:
        # Where the row lies while the attempt runs: the end of its lease and the grace for writing the outcome.
        self.row = row
        self.action = action
        # What a handler is asked for, if the target is one.
        self.request = request
        # When it was planned for, encoded, if the attempt is of the usual kind: see usual.py.
        self.planned = planned
        self.occurrence_us = occurrence_us
        # Within its occurrence, from 1.
        self.number = number
        self.worker = worker
        self.deadline_us = deadline_us
        self.started_us = 0
        # When it must have ended or been extended.
        self.lease_ends_us = lease_ends_us
        self.task: asyncio.Task[None] | None = None
        # The attempts that are executed by one call of a handler with this one, itself included, unless cut short.
        self.companions: dict[Attempt, None] | None = None
        # While a lease is being extended, the attempt must not be finished: the row is on its way.
        self.extension: asyncio.Future[None] | None = None
        self.why_cancelled: Result | None = None
        self._context: Context | None = None

    @property
    def id(self) -> str:
        return attempt_id(self.action.guid, self.occurrence_us, self.number)

    @property
    def context(self) -> Context:
        """What a handler or an HTTP target is told of it."""
        if self._context is None:
            self._context = Context(
                action_id=self.action.action_id,
                attempt_id=self.id,
                attempt_number=self.number,
                idempotency_key=idempotency_key(self.action.guid, self.occurrence_us),
                occurrence_us=self.occurrence_us,
                scheduled_us=self.action.scheduled_at_us,
                deadline_us=self.deadline_us,
                worker=self.worker,
            )
        return self._context

    @property
    def spec(self) -> Spec:
        """Decoded when it is asked for; of a usual attempt it never is."""
        return Spec.FromString(self.action.spec)

    @property
    def status(self) -> Status:
        """The one under which the attempt began."""
        return Status.FromString(self.action.status)

    @property
    def ends_us(self) -> int:
        """When it is cut short, unless its lease is extended."""
        return min(self.deadline_us, self.lease_ends_us)

    def record(self, result: Result, ended_us: int) -> action_pb2.Attempt:
        """What the status will say of it."""
        record = action_pb2.Attempt()
        record.number = self.number
        record.id = self.id
        record.worker = self.worker
        record.outcome = result.outcome
        set_us(record.start_time, self.started_us)
        set_us(record.end_time, ended_us)
        if result.error:
            record.error = result.error[:ERROR_TEXT_LENGTH]
        return record
