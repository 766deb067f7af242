"""What is behind the gRPC services: the database, compiled texts, sessions, and a log of requests."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.faults import Faults
from tests.ydb_endpoint.runtime.compilation import CompiledText, compiled_text
from tests.ydb_endpoint.runtime.text_run import Evaluation, ResultSet, TextRun
from tests.ydb_endpoint.scheme import change_schema
from tests.ydb_endpoint.storage import Database, Transaction

_HEADER = "-- clepsydra "


def system_clock_us() -> int:
    return time.time_ns() // 1000


def call_of(text: str) -> str:
    """The call that a text names in its first line."""
    first = text.partition("\n")[0]
    return first.removeprefix(_HEADER) if first.startswith(_HEADER) else ""


class Request(NamedTuple):
    rpc: str
    call: str


@dataclass
class Session:
    session_id: str
    transactions: dict[str, Transaction] = field(default_factory=dict)
    _is_busy: bool = False

    @contextmanager
    def busy(self) -> Iterator["Session"]:
        """A session executes one text at a time."""
        if self._is_busy:
            raise Refused(Status.SESSION_BUSY, "Pending previous query completion")
        self._is_busy = True
        try:
            yield self
        finally:
            self._is_busy = False


class Engine:
    def __init__(
        self,
        root: str,
        *,
        clock: Callable[[], int] = system_clock_us,
        evaluation: Evaluation = Evaluation.EACH_USE,
        seed: int = 0,
    ) -> None:
        self.database = Database(root)
        self.faults = Faults()
        self.requests: list[Request] = []
        # Rows of ranges that partitions have sent, wanted or not.
        self.rows_read = 0
        self.clock = clock
        self.evaluation = evaluation
        self.sessions: dict[str, Session] = {}
        self._randomness = random.Random(seed)
        self._numbers = count(1)
        self._texts: dict[str, tuple[int, CompiledText]] = {}

    def record(self, rpc: str, call: str = "") -> None:
        self.requests.append(Request(rpc, call))

    # Sessions and transactions.

    def create_session(self) -> Session:
        session = Session(f"session-{next(self._numbers)}")
        self.sessions[session.session_id] = session
        return session

    def session(self, session_id: str) -> Session:
        session = self.sessions.get(session_id)
        if session is None:
            raise Refused(Status.BAD_SESSION, f"Session not found: {session_id}")
        return session

    def delete_session(self, session_id: str) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            for transaction in session.transactions.values():
                transaction.end()

    def begin(self, session: Session, *, is_serializable: bool) -> str:
        transaction_id = f"tx-{next(self._numbers)}"
        session.transactions[transaction_id] = self.database.begin(is_serializable=is_serializable)
        return transaction_id

    def transaction(self, session: Session, transaction_id: str) -> Transaction:
        transaction = session.transactions.get(transaction_id)
        if transaction is None:
            raise Refused(Status.NOT_FOUND, f"Transaction not found: {transaction_id}")
        return transaction

    # Texts.

    def compiled(self, text: str) -> CompiledText:
        version = self.database.schema_version
        known = self._texts.get(text)
        if known is None or known[0] != version:
            known = self._texts[text] = version, compiled_text(text, self.database)
        return known[1]

    async def execute(self, text: str, sent: Mapping[str, Any], transaction: Transaction) -> list[ResultSet]:
        """Run the statements with the parameters of a request. The caller commits."""
        return await self.run(text, self.compiled(text).bound(sent), transaction)

    async def run(self, text: str, parameters: dict[str, Any], transaction: Transaction) -> list[ResultSet]:
        """Run the statements with plain values as parameters. The caller commits."""
        before, run = (
            transaction.rows_read,
            TextRun(self.compiled(text), parameters, transaction, self.clock, self.evaluation, self._randomness),
        )
        try:
            return await run.run_statements()
        finally:
            self.rows_read += transaction.rows_read - before

    def execute_ddl(self, text: str) -> bool:
        """Execute a text of DDL. False: the text is something else."""
        statements = self.compiled(text).schema
        for statement in statements:
            change_schema(self.database, statement)
        return bool(statements)
