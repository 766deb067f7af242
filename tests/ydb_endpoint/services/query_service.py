"""The query service: sessions, transactions, and texts whose results are streamed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from tests.ydb_endpoint.engine import Engine, Session, call_of
from tests.ydb_endpoint.errors import Refused, Status, wrong_text
from tests.ydb_endpoint.faults import Fault, Kind
from tests.ydb_endpoint.messages import query_grpc, query_pb2
from tests.ydb_endpoint.runtime.compilation import plan_of
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
        except Refused as refused:
            return refusal(query_pb2.CreateSessionResponse, refused)
        session = self._engine.create_session()
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
            self._engine.transaction(session, request.tx_id).commit()
            del session.transactions[request.tx_id]
        except Refused as refused:
            return refusal(query_pb2.CommitTransactionResponse, refused)
        return query_pb2.CommitTransactionResponse(status=_SUCCESS)

    async def RollbackTransaction(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._engine.record("RollbackTransaction")
        try:
            session = self._engine.session(request.session_id)
            self._engine.transaction(session, request.tx_id).end()
            del session.transactions[request.tx_id]
        except Refused as refused:
            return refusal(query_pb2.RollbackTransactionResponse, refused)
        return query_pb2.RollbackTransactionResponse(status=_SUCCESS)

    async def ExecuteQuery(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        text = request.query_content.text
        call = call_of(text)
        self._engine.record("ExecuteQuery", call)
        fault = self._engine.faults.next_for(call)
        try:
            self._inject_before(fault, call)
            if request.exec_mode == query_pb2.EXEC_MODE_EXPLAIN:
                yield self._explained(text)
                return
            with self._engine.session(request.session_id).busy() as session:
                results, transaction_id = await self._work(session, request, text)
                await self._inject_after(fault)
        except Refused as refused:
            yield refusal(query_pb2.ExecuteQueryResponsePart, refused)
            return
        most_rows = fault.rows if fault is not None and fault.kind is Kind.TRUNCATE else None
        for part in response_parts(
            results, transaction_id, concurrent=request.concurrent_result_sets, most_rows=most_rows
        ):
            yield part

    async def _work(self, session: Session, request: Any, text: str) -> tuple[list[ResultSet], str]:
        if not request.HasField("tx_control"):
            return await self._implicit(request, text), ""
        return await self._in_transaction(session, request, text)

    async def _implicit(self, request: Any, text: str) -> list[ResultSet]:
        """Without transaction control a text is DDL, or one serializable transaction."""
        if self._engine.execute_ddl(text):
            return []
        transaction = self._engine.database.begin(is_serializable=True)
        try:
            results = await self._engine.execute(text, request.parameters, transaction)
            transaction.commit()
        finally:
            transaction.end()
        return results

    async def _in_transaction(self, session: Session, request: Any, text: str) -> tuple[list[ResultSet], str]:
        control = request.tx_control
        if control.WhichOneof("tx_selector") == "tx_id":
            transaction_id = control.tx_id
        else:
            transaction_id = self._engine.begin(session, is_serializable=_is_serializable(control.begin_tx))
        transaction = self._engine.transaction(session, transaction_id)
        try:
            results = await self._engine.execute(text, request.parameters, transaction)
        except Refused:
            # An error ends the transaction.
            transaction.end()
            session.transactions.pop(transaction_id, None)
            raise
        if not control.commit_tx:
            return results, transaction_id
        del session.transactions[transaction_id]
        transaction.commit()
        return results, ""

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
        if fault is None:
            return
        if fault.kind is Kind.STATUS_INSTEAD:
            raise Refused(fault.status, "as planned, before the work")
        if fault.kind is Kind.CUT_BEFORE:
            self._cut()
            raise Refused(Status.CANCELLED, "the connection is broken")

    async def _inject_after(self, fault: Fault | None) -> None:
        if fault is None:
            return
        if fault.kind is Kind.STATUS_AFTER:
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


def _is_serializable(settings: Any) -> bool:
    match settings.WhichOneof("tx_mode"):
        case "serializable_read_write":
            return True
        case "snapshot_read_only":
            return False
        case mode:
            raise wrong_text(f"the endpoint does not know the transaction mode {mode}")
