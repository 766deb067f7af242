"""One try of one request, through a pool of sessions. Nothing here tries twice, and every wait has a limit.

A write is one round trip: its request begins a serializable transaction, and commits it. So is a read, in a snapshot.
Every request says so itself, because a server's setting may give requests that do not say it another mode. Only DDL has
no transaction: the server takes it in none.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import ydb
from ydb.aio.driver import Driver
from ydb.aio.query import QuerySession, QuerySessionPool, QueryTxContext
from ydb.convert import ResultSet, aggregate_result_sets_by_index_async

from clepsydra.store.errors import StoreError, Unavailable, Unusable
from clepsydra.store.statements import Statements
from clepsydra.store.ydb.connection.errors import harmless_failure, write_failure
from clepsydra.store.ydb.url import Limits

Parameters = Mapping[str, Any]
ColumnValues = dict[str, Any]
_Start = Callable[[QuerySession], Awaitable[Any]]
_Failure = Callable[[Exception], StoreError]

STATEMENTS = Statements.of_package("clepsydra.store.ydb", ".yql")

# Every JOIN of the store looks rows up by their whole keys. A server may be set to level 4, where the optimiser reads
# the whole table instead if it expects more than 1,000 rows on the left side. At level 3 it prefers lookups.
_LOOKUPS = 'PRAGMA ydb.CostBasedOptimizationLevel = "3";'

_log = logging.getLogger(__name__)

# The request's own deadline ends a try. This ends it even if the SDK is busy cleaning up after a broken connection.
_CLEAN_UP_S = 1.0


def texts_in(path: str) -> dict[str, str]:
    """The statements as they are sent. Each names its call, for those who read the server's list of top queries."""
    return {name: text_in(path, name, f"{_LOOKUPS}\n\n{STATEMENTS[name]}") for name in STATEMENTS}


def text_in(path: str, call: str, statements: str) -> str:
    return f'-- clepsydra {call}\nPRAGMA TablePathPrefix("{path}");\n{statements}'


class Results:
    """The result sets of one text. The server may send them in any order."""

    def __init__(self, sets: list[ResultSet]) -> None:
        self._sets = {found.index: found for found in sets}

    def rows(self, index: int = 0) -> list[ColumnValues]:
        """The rows of the text's SELECT with this number, counted from 0."""
        found = self._sets.get(index)
        return [] if found is None else found.rows


class Sessions:
    def __init__(self, driver: Driver, path: str, limits: Limits) -> None:
        self._texts = texts_in(path)
        self._path = path
        self._limits = limits
        self._pool = QuerySessionPool(driver, size=limits.sessions, name="clepsydra")
        self._closed = False
        self._in_use = 0
        self._none_in_use = asyncio.Event()
        self._none_in_use.set()

    async def close(self) -> None:
        """Start nothing more, and wait for the requests in flight."""
        self._closed = True
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await self._none_in_use.wait()
        except TimeoutError:
            _log.warning("the store is closed with %d requests in flight", self._in_use)
        await self._pool.stop()

    async def write(self, name: str, parameters: Parameters) -> Results:
        """A serializable transaction."""
        timeout_s = self._limits.timeout_s

        async def start(session: QuerySession) -> Any:
            transaction = _begin(session, ydb.QuerySerializableReadWrite())
            return await _execute_in(transaction, self._texts[name], parameters, timeout_s=timeout_s, commit=True)

        return await self._send(start, timeout_s, write_failure)

    async def read(self, name: str, parameters: Parameters, timeout_s: float | None = None) -> Results:
        """All SELECTs of a text in one snapshot."""
        limit_s = timeout_s or self._limits.timeout_s

        async def start(session: QuerySession) -> Any:
            return await _execute_in(
                _begin(session, ydb.QuerySnapshotReadOnly()),
                self._texts[name],
                parameters,
                timeout_s=limit_s,
                commit=True,
            )

        return await self._send(start, limit_s, harmless_failure)

    async def execute_ddl(self, statements: str, timeout_s: float) -> None:
        text = text_in(self._path, "install", statements)
        await self._send(lambda session: session.execute(text, settings=_settings(timeout_s)), timeout_s, write_failure)

    @asynccontextmanager
    async def snapshot(self, timeout_s: float | None = None) -> AsyncIterator["Snapshot"]:
        """One snapshot for any number of reads, at one round trip each. The limit is on each read."""
        session = await self._take()
        settings = _settings(self._limits.timeout_s)
        is_committed = False
        try:
            transaction = _begin(session, ydb.QuerySnapshotReadOnly())
            yield Snapshot(self._texts, transaction, timeout_s or self._limits.timeout_s)
            await _result_of(transaction.commit(settings), harmless_failure)
            is_committed = True
        finally:
            if not is_committed:
                # The server releases the snapshot together with the session.
                await session.delete(settings)
            await self._give_back(session)

    async def _send(self, start: _Start, timeout_s: float, failure: _Failure) -> Results:
        session = await self._take()
        try:
            async with asyncio.timeout(timeout_s + _CLEAN_UP_S):
                stream = await _result_of(start(session), harmless_failure)
                return await _collect(stream, failure)
        except TimeoutError as error:
            raise failure(TimeoutError(f"no response within {timeout_s} s")) from error
        finally:
            await self._give_back(session)

    async def _take(self) -> QuerySession:
        timeout_s = self._limits.timeout_s
        if self._closed:
            raise Unusable("it was closed")
        try:
            async with asyncio.timeout(timeout_s):
                session: QuerySession = await _result_of(self._pool.acquire(), harmless_failure)
        except TimeoutError as error:
            raise Unavailable(
                f"none of {self._limits.sessions} sessions with the server was free within {timeout_s} s"
            ) from error
        self._in_use += 1
        self._none_in_use.clear()
        return session

    async def _give_back(self, session: QuerySession) -> None:
        await self._pool.release(session)
        self._in_use -= 1
        if not self._in_use:
            self._none_in_use.set()


class Snapshot:
    """A snapshot that is held open."""

    def __init__(self, texts: Mapping[str, str], transaction: QueryTxContext, timeout_s: float) -> None:
        self._texts = texts
        self._transaction = transaction
        self._timeout_s = timeout_s

    async def read(self, name: str, parameters: Parameters) -> Results:
        reading = _execute_in(self._transaction, self._texts[name], parameters, timeout_s=self._timeout_s, commit=False)
        return await _collect(await _result_of(reading, harmless_failure), harmless_failure)


async def _execute_in(
    transaction: QueryTxContext, text: str, parameters: Parameters, *, timeout_s: float, commit: bool
) -> Any:
    return await transaction.execute(
        text,
        dict(parameters),
        commit_tx=commit,
        # The server need not finish one SELECT before it begins the next.
        concurrent_result_sets=True,
        settings=_settings(timeout_s),
    )


async def _collect(stream: Any, failure: _Failure) -> Results:
    sets: list[ResultSet] = await _result_of(aggregate_result_sets_by_index_async(stream), failure)
    if any(found.truncated for found in sets):
        # The query service truncates nothing, however large a result is. If that ever changes, nothing may be missed.
        raise failure(ydb.issues.TruncatedResponseError("the server sent only a part of a result"))
    return Results(sets)


async def _result_of(work: Awaitable[Any], failure: _Failure) -> Any:
    """What the SDK returns, or its error as an error of the store."""
    try:
        return await work
    except StoreError:
        raise
    except (ValueError, TypeError):
        # A defect of ours: a value does not fit its declared type.
        raise
    except Exception as error:
        raise failure(error) from error
    except asyncio.CancelledError as error:
        # When a connection breaks, the SDK closes it and cancels the requests that other tasks have in flight on it.
        # That looks here as if this task had been cancelled, though it was not.
        if _is_cancelling():
            raise
        raise failure(ydb.issues.ConnectionLost("the connection broke during another call")) from error


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _begin(session: QuerySession, mode: ydb.BaseQueryTxMode) -> QueryTxContext:
    """Says which transaction the next request begins. Sends nothing."""
    try:
        return session.transaction(mode)
    except (ydb.Error, RuntimeError) as error:
        raise harmless_failure(error) from error


def _settings(timeout_s: float) -> ydb.BaseRequestSettings:
    return ydb.BaseRequestSettings().with_timeout(timeout_s)
