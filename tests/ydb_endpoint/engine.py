"""What is behind the gRPC services: the database, compiled texts, sessions, and a log of requests."""

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.faults import Faults
from tests.ydb_endpoint.limits import ServerLimits
from tests.ydb_endpoint.runtime.compilation import CompiledText, compiled_text
from tests.ydb_endpoint.runtime.text_run import Evaluation, ResultSet, Surroundings, TextRun
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
    # The transaction that the request asks for.
    mode: str


class OpenTransaction(NamedTuple):
    """A transaction that outlives its request."""

    transaction: Transaction
    begun_us: int
    used_us: int


@dataclass
class Session:
    session_id: str
    used_us: int
    transactions: dict[str, OpenTransaction] = field(default_factory=dict)
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
        limits: ServerLimits | None = None,
        version: str = "25.4.1.15",
    ) -> None:
        self.limits = limits or ServerLimits()
        self.database = Database(root, self.limits)
        self.faults = Faults(randomness=random.Random(seed))
        self.version = version
        self.requests: list[Request] = []
        # Rows of ranges that partitions have sent, wanted or not.
        self.rows_read = 0
        self.clock = clock
        self.evaluation = evaluation
        self.sessions: dict[str, Session] = {}
        self._randomness = random.Random(seed)
        self._numbers = count(1)
        self._texts: dict[str, tuple[int, CompiledText]] = {}

    def record(self, rpc: str, call: str = "", mode: str = "") -> None:
        self.requests.append(Request(rpc, call, mode))

    # Sessions and transactions.

    def create_session(self) -> Session:
        if len(self.sessions) >= self.limits.sessions:
            raise Refused(Status.OVERLOADED, f"Active sessions limit exceeded, maximum allowed: {self.limits.sessions}")
        session = Session(f"session-{next(self._numbers)}", self.clock())
        self.sessions[session.session_id] = session
        return session

    def session(self, session_id: str) -> Session:
        session, now_us = self.sessions.get(session_id), self.clock()
        if session is not None and now_us - session.used_us > self.limits.session_idle_us:
            self.delete_session(session_id)
            session = None
        if session is None:
            raise Refused(Status.BAD_SESSION, f"Session not found: {session_id}")
        session.used_us = now_us
        return session

    def delete_session(self, session_id: str) -> None:
        session = self.sessions.pop(session_id, None)
        if session is not None:
            for held in session.transactions.values():
                held.transaction.end()

    def begin(self, session: Session, *, is_serializable: bool) -> str:
        transaction_id = f"tx-{next(self._numbers)}"
        begun = self.database.begin(is_serializable=is_serializable)
        session.transactions[transaction_id] = OpenTransaction(begun, self.clock(), self.clock())
        return transaction_id

    def transaction(self, session: Session, transaction_id: str) -> Transaction:
        held, now_us = session.transactions.get(transaction_id), self.clock()
        if held is not None and now_us - held.used_us > self.limits.transaction_idle_us:
            self.end(session, transaction_id)
            held = None
        if held is None:
            raise Refused(Status.NOT_FOUND, f"Transaction not found: {transaction_id}")
        if now_us - held.begun_us > self.limits.snapshot_life_us:
            self.end(session, transaction_id)
            raise Refused(Status.ABORTED, "The snapshot is too old: the rows that it shows may be deleted")
        session.transactions[transaction_id] = held._replace(used_us=now_us)
        return held.transaction

    def end(self, session: Session, transaction_id: str) -> None:
        held = session.transactions.pop(transaction_id, None)
        if held is not None:
            held.transaction.end()

    # Texts.

    def compiled(self, text: str) -> CompiledText:
        version = self.database.schema_version
        known = self._texts.get(text)
        if known is None or known[0] != version:
            known = self._texts[text] = version, compiled_text(text, self.database)
        return known[1]

    async def execute(self, text: str, sent: Mapping[str, Any], transaction: Transaction) -> list[ResultSet]:
        """Run the statements with the parameters of a request. The caller commits."""
        size = sum(value.ByteSize() for value in sent.values())
        if size > self.limits.parameter_bytes:
            raise Refused(Status.BAD_REQUEST, f"Parameters of {size} bytes: no more than {self.limits.parameter_bytes}")
        return await self.run(text, self.compiled(text).bound(sent), transaction)

    def _check_right_to_write(self, compiled: CompiledText) -> None:
        if compiled.effects and not self.database.rights.may_write:
            raise Refused(Status.UNAUTHORIZED, f"Access denied to {compiled.effects[0].table.path}")

    async def run(self, text: str, parameters: dict[str, Any], transaction: Transaction) -> list[ResultSet]:
        """Run the statements with plain values as parameters. The caller commits."""
        compiled, before = self.compiled(text), transaction.rows_read
        self._check_right_to_write(compiled)
        surroundings = Surroundings(self.clock, self.version, self.limits, self.evaluation, self._randomness)
        run = TextRun(compiled, parameters, transaction, surroundings)
        try:
            return await run.run_statements()
        finally:
            self.rows_read += transaction.rows_read - before

    async def execute_ddl(self, text: str) -> bool:
        """Execute a text of DDL. False: the text is something else."""
        statements = self.compiled(text).schema
        for statement in statements:
            is_new = statement.name not in self.database.tables
            change_schema(self.database, statement)
            if is_new:
                await self._finish_table(statement.name)
        return bool(statements)

    async def _finish_table(self, path: str) -> None:
        self.database.unfinished.add(path)
        try:
            await asyncio.sleep(self.limits.creation_s)
        finally:
            self.database.unfinished.discard(path)
            self.database.schema_version += 1
