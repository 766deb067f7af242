"""The query service: sessions, transactions, and texts whose results are streamed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.ydb_endpoint.engine import Engine, Session, call_of
from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.faults import Fault, Kind
from tests.ydb_endpoint.messages import query_grpc, query_pb2
from tests.ydb_endpoint.runtime.compilation import CompiledText, plan_of
from tests.ydb_endpoint.runtime.text_run import ResultSet
from tests.ydb_endpoint.services.responses import refusal, response_parts

_SUCCESS = int(Status.SUCCESS)
_NODE_ID = 1


class QueryService(query_grpc.QueryServiceServicer):  # type: ignore[misc]  # generated code has no types
    def __init__(self, engine: Engine, cut: Callable[[], None]) -> None:
        self._engine = engine
        self._cut = cut
        self._attached: dict[str, asyncio.Event] = {}

    async def CreateSession(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's own name
        self._engine.record("CreateSession")
        try:
            self._inject("CreateSession")
            session = self._engine.create_session()
        except Refused as refused:
            return refusal(query_pb2.CreateSessionResponse, refused)
        return query_pb2.CreateSessionResponse(status=_SUCCESS, session_id=session.session_id, node_id=_NODE_ID)

    async def DeleteSession(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._end(request.session_id)
        return query_pb2.DeleteSessionResponse(status=_SUCCESS)

    async def AttachSession(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """A session lives until its client closes this stream."""
        ended = self._attached.setdefault(request.session_id, asyncio.Event())
        try:
            self._engine.session(request.session_id)
            yield query_pb2.SessionState(status=_SUCCESS)
            await ended.wait()
        except Refused as refused:
            yield refusal(query_pb2.SessionState, refused)
        finally:
            self._end(request.session_id)

    async def BeginTransaction(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("BeginTransaction")
        try:
            session = self._engine.session(request.session_id)
            transaction_id = self._engine.begin(session, is_serializable=_is_serializable(request.tx_settings))
        except Refused as refused:
            return refusal(query_pb2.BeginTransactionResponse, refused)
        return query_pb2.BeginTransactionResponse(status=_SUCCESS, tx_meta=query_pb2.TransactionMeta(id=transaction_id))

    async def CommitTransaction(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("CommitTransaction")
        try:
            session = self._engine.session(request.session_id)
            self._commit(session, request.tx_id, None)
        except Refused as refused:
            return refusal(query_pb2.CommitTransactionResponse, refused)
        return query_pb2.CommitTransactionResponse(status=_SUCCESS)

    async def RollbackTransaction(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("RollbackTransaction")
        try:
            session = self._engine.session(request.session_id)
            self._engine.transaction(session, request.tx_id)
            self._engine.end(session, request.tx_id)
        except Refused as refused:
            return refusal(query_pb2.RollbackTransactionResponse, refused)
        return query_pb2.RollbackTransactionResponse(status=_SUCCESS)

    async def ExecuteQuery(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        text = request.query_content.text
        call = call_of(text)
        self._engine.record("ExecuteQuery", call, _mode(request))
        fault = self._engine.faults.next_for(call)
        try:
            self._inject_before(fault, call)
            if request.exec_mode == query_pb2.EXEC_MODE_EXPLAIN:
                yield self._explained(text)
                return
            fault = fault or self._engine.faults.next_trouble()
            self._inject_instead(fault)
            with self._engine.session(request.session_id).busy() as session:
                async for part in self._response(session, request, text, fault):
                    yield part
        except Refused as refused:
            yield refusal(query_pb2.ExecuteQueryResponsePart, refused)

    async def _response(self, session: Session, request: Any, text: str, fault: Fault | None) -> AsyncIterator[Any]:
        is_implicit = not request.HasField("tx_control")
        results: list[ResultSet] = []
        transaction_id = ""
        if not is_implicit or not await self._engine.execute_ddl(text):
            results, transaction_id = await self._executed(session, request, text)
        most_rows = fault.rows if fault is not None and fault.kind is Kind.TRUNCATE else None
        parts = response_parts(
            results,
            "" if is_implicit or request.tx_control.commit_tx else transaction_id,
            concurrent=request.concurrent_result_sets,
            most_rows=most_rows,
        )
        # As YDB may do, stream the rows of a text that writes before it is committed.
        if fault is None or fault.streams_early:
            for part in parts:
                yield part
        if fault is not None and fault.kind is Kind.STATUS_STREAMED:
            self._engine.end(session, transaction_id)
            raise Refused(fault.status, "as planned, after the rows")
        if transaction_id and (is_implicit or request.tx_control.commit_tx):
            self._commit(session, transaction_id, fault)
        await self._inject_after(fault)
        for part in parts:
            yield part

    async def _executed(self, session: Session, request: Any, text: str) -> tuple[list[ResultSet], str]:
        """Run a text in the transaction that the request names. Without one, it is a serializable transaction."""
        control = request.tx_control
        if control.WhichOneof("tx_selector") == "tx_id":
            transaction_id = control.tx_id
        else:
            is_serializable = not request.HasField("tx_control") or _is_serializable(control.begin_tx)
            transaction_id = self._engine.begin(session, is_serializable=is_serializable)
        try:
            _refuse_ddl(self._engine.compiled(text))
            transaction = self._engine.transaction(session, transaction_id)
            return await self._engine.execute(text, request.parameters, transaction), transaction_id
        except BaseException:
            # An error ends the transaction.
            self._engine.end(session, transaction_id)
            raise

    def _commit(self, session: Session, transaction_id: str, fault: Fault | None) -> None:
        transaction = self._engine.transaction(session, transaction_id)
        if fault is not None and fault.kind is Kind.LOSE_LOCKS:
            transaction.lose_locks()
        try:
            transaction.commit()
        finally:
            self._engine.end(session, transaction_id)

    def _explained(self, text: str) -> Any:
        plan = json.dumps(plan_of(self._engine.compiled(text)))
        part = query_pb2.ExecuteQueryResponsePart(status=_SUCCESS)
        part.exec_stats.query_plan = plan
        return part

    # Faults.

    def _inject(self, rpc: str) -> None:
        fault = self._engine.faults.next_for(rpc)
        if fault is not None:
            raise Refused(fault.status, "as planned")

    def _inject_before(self, fault: Fault | None, call: str) -> None:
        interruption = self._engine.faults.interruptions.pop(call, None)
        if interruption is not None:
            interruption()
        if fault is not None and fault.kind is Kind.CUT_BEFORE:
            self._cut()
            raise Refused(Status.CANCELLED, "the connection is broken")

    def _inject_instead(self, fault: Fault | None) -> None:
        if fault is not None and fault.kind is Kind.STATUS_INSTEAD:
            raise Refused(fault.status, "as planned, before the work")

    async def _inject_after(self, fault: Fault | None) -> None:
        if fault is None:
            return
        if fault.kind in (Kind.STATUS_AFTER, Kind.STATUS_STREAMED_DONE):
            raise Refused(fault.status, "as planned, after the work")
        if fault.kind is Kind.CUT_AFTER:
            self._cut()
            raise Refused(Status.CANCELLED, "the connection is broken")
        if fault.kind is Kind.SLOW:
            await self._engine.faults.release_slow.wait()

    def _end(self, session_id: str) -> None:
        self._engine.delete_session(session_id)
        ended = self._attached.pop(session_id, None)
        if ended is not None:
            ended.set()

    def end_all(self) -> None:
        for session_id in list(self._attached):
            self._end(session_id)


def _refuse_ddl(text: CompiledText) -> None:
    if text.schema:
        raise Refused(Status.BAD_REQUEST, "Scheme operations cannot be executed inside transaction")


def _mode(request: Any) -> str:
    """The transaction that a request asks for, and whether it commits it as well."""
    if not request.HasField("tx_control"):
        return ""
    control = request.tx_control
    begun = control.begin_tx.WhichOneof("tx_mode") if control.WhichOneof("tx_selector") == "begin_tx" else "open"
    return f"{begun}, committed" if control.commit_tx else str(begun)


def _is_serializable(settings: Any) -> bool:
    match settings.WhichOneof("tx_mode"):
        case "serializable_read_write":
            return True
        case "snapshot_read_only":
            return False
        case mode:
            raise wrong_text(f"the endpoint does not know the transaction mode {mode}")
