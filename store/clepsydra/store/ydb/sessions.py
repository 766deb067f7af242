"""One try of one request, through a pool of sessions: nothing here tries twice, and everything has an end.

A text without transaction control is one serializable transaction and one round trip. A read is one round trip too: it
begins a snapshot, and commits it with the same request.
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

from clepsydra.store.statements import Statements
from clepsydra.store.ydb.errors import Failed, Nature, after_sending, before_sending
from clepsydra.store.ydb.location import Limits

Parameters = Mapping[str, Any]
_Start = Callable[[QuerySession], Awaitable[Any]]

QUERIES = Statements.of_package(__package__, ".yql")

_log = logging.getLogger(__name__)

# The request's own deadline ends a try; this ends it even if the SDK is busy cleaning up after a broken connection.
_CLEAN_UP_S = 1.0


class Texts:
    """The statements as they are sent: each says which call it is, for whoever looks at the server's top queries."""

    def __init__(self, path: str) -> None:
        self._texts = {
            name: f'-- clepsydra {name}\nPRAGMA TablePathPrefix("{path}");\n\n{QUERIES[name]}' for name in QUERIES
        }

    def __getitem__(self, name: str) -> str:
        return self._texts[name]


class Results:
    """The result sets of one text. Where they are read concurrently, they arrive in any order."""

    def __init__(self, sets: list[ResultSet]) -> None:
        self._sets = {found.index: found for found in sets}

    def rows(self, index: int = 0) -> list[dict[str, Any]]:
        """The rows of the set that the text's SELECT number `index` gave, counted from 0."""
        found = self._sets.get(index)
        return [] if found is None else found.rows

    def is_truncated(self, index: int = 0) -> bool:
        """Whether the server had more than it sends at once."""
        found = self._sets.get(index)
        return found is not None and bool(found.truncated)


class Sessions:
    def __init__(self, driver: Driver, path: str, limits: Limits) -> None:
        self._texts = Texts(path)
        self._limits = limits
        self._pool = QuerySessionPool(driver, size=limits.sessions, name="clepsydra")
        self._closed = False
        self._taken = 0
        self._all_back = asyncio.Event()
        self._all_back.set()

    async def close(self) -> None:
        """Begin nothing more, and let what is under way end."""
        self._closed = True
        try:
            async with asyncio.timeout(self._limits.timeout_s):
                await self._all_back.wait()
        except TimeoutError:
            _log.warning("the store is closed with %d requests under way", self._taken)
        await self._pool.stop()

    async def write(self, name: str, parameters: Parameters) -> Results:
        """A serializable transaction."""

        async def start(session: QuerySession) -> Any:
            settings = _settings(self._limits.timeout_s)
            return await session.execute(self._texts[name], dict(parameters), settings=settings)

        return await self._once(start, self._limits.timeout_s)

    async def read(self, name: str, parameters: Parameters, timeout_s: float | None = None) -> Results:
        """One snapshot, however many statements there are."""
        limit_s = timeout_s or self._limits.timeout_s

        async def start(session: QuerySession) -> Any:
            return await self._read_in(_snapshot_of(session), name, parameters, limit_s, commit=True)

        return await self._once(start, limit_s)

    @asynccontextmanager
    async def snapshot(self, timeout_s: float) -> AsyncIterator["Snapshot"]:
        """One snapshot for as many reads as it takes, at one round trip each."""
        session = await self._take()
        ended = False
        try:
            transaction = _snapshot_of(session)
            yield Snapshot(self, transaction, timeout_s)
            await _finished(transaction.commit(_settings(self._limits.timeout_s)), after_sending)
            ended = True
        finally:
            if not ended:
                # With the session, the server lets go of the snapshot.
                await session.delete(_settings(self._limits.timeout_s))
            await self._give_back(session)

    async def execute_ddl(self, text: str, timeout_s: float) -> None:
        await self._once(lambda session: session.execute(text, settings=_settings(timeout_s)), timeout_s)

    async def _once(self, start: _Start, timeout_s: float) -> Results:
        session = await self._take()
        try:
            async with asyncio.timeout(timeout_s + _CLEAN_UP_S):
                return await _received(await _finished(start(session), before_sending))
        except TimeoutError as error:
            raise Failed(Nature.UNKNOWN, f"no answer within {timeout_s} s") from error
        finally:
            await self._give_back(session)

    async def _take(self) -> QuerySession:
        timeout_s = self._limits.timeout_s
        if self._closed:
            raise Failed(Nature.HOPELESS, "it was closed")
        try:
            async with asyncio.timeout(timeout_s):
                session: QuerySession = await _finished(self._pool.acquire(), before_sending)
        except TimeoutError as error:
            reason = f"none of {self._limits.sessions} sessions with the server was free within {timeout_s} s"
            raise Failed(Nature.NOT_DONE, reason) from error
        self._taken += 1
        self._all_back.clear()
        return session

    async def _give_back(self, session: QuerySession) -> None:
        await self._pool.release(session)
        self._taken -= 1
        if not self._taken:
            self._all_back.set()

    async def _read_in(
        self, transaction: QueryTxContext, name: str, parameters: Parameters, timeout_s: float, *, commit: bool
    ) -> Any:
        return await transaction.execute(
            self._texts[name],
            dict(parameters),
            commit_tx=commit,
            # Both sets of a text in one phase: the server need not wait for one before it reads the other.
            concurrent_result_sets=True,
            settings=_settings(timeout_s),
        )


class Snapshot:
    """A snapshot that is held open."""

    def __init__(self, sessions: Sessions, transaction: QueryTxContext, timeout_s: float) -> None:
        self._sessions = sessions
        self._transaction = transaction
        self._timeout_s = timeout_s

    async def read(self, name: str, parameters: Parameters) -> Results:
        reading = self._sessions._read_in(self._transaction, name, parameters, self._timeout_s, commit=False)
        return await _received(await _finished(reading, before_sending))


async def _received(stream: Any) -> Results:
    return Results(await _finished(aggregate_result_sets_by_index_async(stream), after_sending))


async def _finished(work: Awaitable[Any], meaning: Callable[[Exception], Failed]) -> Any:
    try:
        return await work
    except (ValueError, TypeError):
        # Our own mistake: a value that does not fit its declared type.
        raise
    except Exception as error:
        raise meaning(error) from error
    except asyncio.CancelledError as error:
        # When a connection breaks, the SDK closes it and cancels what others have under way on it. That arrives here as
        # if this task had been cancelled, which it was not.
        if _is_cancelling():
            raise
        raise meaning(ydb.issues.ConnectionLost("the connection broke under another call")) from error


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _snapshot_of(session: QuerySession) -> QueryTxContext:
    try:
        return session.transaction(ydb.QuerySnapshotReadOnly())
    except (ydb.Error, RuntimeError) as error:
        raise before_sending(error) from error


def _settings(timeout_s: float) -> ydb.BaseRequestSettings:
    return ydb.BaseRequestSettings().with_timeout(timeout_s)
