"""Sends statements to the server, and sends them again when they fail.

A statement that was certainly not done is sent again for some seconds: after a deadlock, a broken connection, a
restart, a failover. So is a statement of unknown outcome, because every call of the port is safe to repeat. `Retry`
remembers that, and what later tries find is judged by the rule of unknown outcomes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from clepsydra.core.backoff import Backoff
from clepsydra.core.times import MILLISECOND_US, seconds
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable, Unusable
from clepsydra.store.outcomes import CERTAIN, UNCERTAIN
from clepsydra.store.postgres.session import RESPONSE_TIMEOUT_S, make_pool, statements
from clepsydra.store.postgres.url import PostgresUrl

# With the timeouts of its last try, a call ends well before the longest time for which it may be retried.
RETRY_S = 5.0
# Questions about whole tables may take long.
INSPECT_TIMEOUT_S = 600

# Without jitter: the store has no source of randomness, and its callers add jitter to retries of their own.
_BACKOFF = Backoff(first_us=10 * MILLISECOND_US, longest_us=500 * MILLISECOND_US, jitter=0.0)

# Everything that the driver raises.
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


class Retry:
    """How long one call is tried again, over all its statements, and what its earlier tries may have done."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + RETRY_S
        self._failures = 0
        self._failure: StoreError | None = None
        # Whether an earlier try may have taken effect: decides what the result of a later one proves.
        self.certainty = CERTAIN
        # Whether an earlier statement has done a part of the batch: then no failure may say that nothing was done.
        self.is_partly_done = False

    @property
    def left_s(self) -> float:
        return self._ends_at - self._loop.time()

    def failed(self, error: Exception, failure: StoreError) -> None:
        """A try has failed. That time ran out says less than what went wrong before it did."""
        self._failures += 1
        self.certainty = self.certainty.after(failure)
        if self._failure is None or not isinstance(error, TimeoutError):
            self._failure = failure

    def failure(self) -> StoreError:
        """What the caller receives when there is no further try."""
        assert self._failure is not None, "nothing has failed"
        return (UNCERTAIN if self.is_partly_done else self.certainty).failure(self._failure)

    def judge_again(self) -> None:
        """A part of a batch was lost, and is sent again. Whatever changed it has committed, so this ends soon."""
        self.is_partly_done = True
        if self.left_s <= 0:
            raise OutcomeUnknown("the rows changed faster than the store could write them; some of it may be done")

    async def pause(self) -> None:
        await asyncio.sleep(seconds(_BACKOFF.pause_us(self._failures, fraction=0.0)))


class Calls:
    """One installation's statements on one pool of connections."""

    def __init__(self, url: PostgresUrl, pool: asyncpg.Pool) -> None:
        self._shown = url.shown
        self._pool_size = url.pool_size
        self._pool = pool
        self._statements = statements(url.schema)
        self._is_closed = False

    @classmethod
    async def open(cls, url: PostgresUrl) -> "Calls":
        return cls(url, await make_pool(url))

    async def close(self) -> None:
        """Wait for calls in flight, which end within their timeouts, and disconnect."""
        self._is_closed = True
        try:
            async with asyncio.timeout(RETRY_S + RESPONSE_TIMEOUT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def read(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        """Execute a statement that changes nothing."""
        return await self._execute(name, arguments, Retry(), writes=False)

    async def write(self, name: str, *arguments: object, retry: Retry | None = None) -> list[asyncpg.Record]:
        """Execute a statement that changes something. A call of several statements passes its `Retry` to each."""
        return await self._execute(name, arguments, retry or Retry(), writes=True)

    async def inspect(self, *questions: tuple[str, *tuple[object, ...]]) -> list[list[asyncpg.Record]]:
        """Execute statements that read whole tables, each given as its name and arguments, in one snapshot."""
        retry = Retry()
        while True:
            try:
                async with (
                    self._connection(retry) as connection,
                    connection.transaction(isolation="repeatable_read", readonly=True),
                ):
                    await connection.execute(self._statements["plan_freely"])
                    return [
                        await connection.fetch(self._statements[name], *arguments, timeout=INSPECT_TIMEOUT_S)
                        for name, *arguments in questions
                    ]
            except FAILURES as error:
                await self._pause_or_raise(error, translate(error, self._shown), retry)

    async def _execute(
        self, name: str, arguments: tuple[object, ...], retry: Retry, *, writes: bool
    ) -> list[asyncpg.Record]:
        statement = self._statements[name]
        while True:
            try:
                async with self._connection(retry) as connection:
                    rows: list[asyncpg.Record] = await connection.fetch(statement, *arguments)
                    return rows
            except FAILURES as error:
                may_be_done = writes and not is_certainly_not_done(error)
                await self._pause_or_raise(error, translate(error, self._shown, may_be_done=may_be_done), retry)

    @asynccontextmanager
    async def _connection(self, retry: Retry) -> AsyncIterator[Any]:
        connection = await self._acquire(retry)
        try:
            yield connection
        except TimeoutError:
            # The statement may still be running, and nobody waits for its result.
            connection.terminate()
            raise
        finally:
            await self._pool.release(connection)

    async def _acquire(self, retry: Retry) -> Any:
        """A connection, as soon as there is one. If this fails, nothing was sent."""
        while True:
            if self._is_closed:
                raise RuntimeError("the store is closed")
            try:
                return await self._pool.acquire(timeout=max(retry.left_s, 0.001))
            except FAILURES as error:
                failure = translate(error, self._shown)
                if isinstance(error, TimeoutError) and self._is_exhausted():
                    failure = Unavailable(
                        f"all {self._pool_size} connections to the store {self._shown} are in use; raise pool_size in "
                        "its URL"
                    )
                await self._pause_or_raise(error, failure, retry)

    def _is_exhausted(self) -> bool:
        return bool(self._pool.get_size() == self._pool_size and self._pool.get_idle_size() == 0)

    async def _pause_or_raise(self, error: Exception, failure: StoreError, retry: Retry) -> None:
        """Wait before the next try, or raise if there is none."""
        retry.failed(error, failure)
        if not is_retryable(error) or retry.left_s <= 0:
            raise retry.failure() from error
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            # The other connections lead to the same standby.
            await self._pool.expire_connections()
        await retry.pause()


# What errors mean, by SQLSTATE or by its class, which is its first two characters. A later try may succeed after these.
_UNAVAILABLE = {
    "08": "closed the connection; try again",
    "0A000": "has changed its tables; try again",
    "25006": "accepts no writes: it is a standby; name the primary, or all hosts, in the URL",
    "40": "was busy with changes of the same rows; try again",
    "53100": "cannot grow: its disk is full; free some space",
    "53300": "has no connection left; raise max_connections, or lower pool_size in the URL",
    "53": "is short of resources; look at its log",
    "55P03": "was busy with the same rows for too long; look for long transactions in pg_stat_activity",
    "57014": "did not answer within its statement timeout; look at its load and for long transactions",
    "57P03": "is starting up or shutting down; try again",
    "57": "closed the connection; try again",
    "58": "has trouble with its operating system; look at its log",
}

# No later try succeeds after these.
_UNUSABLE = {
    "08P01": "refused the session's settings, as PgBouncer does; name PostgreSQL itself in the URL",
    "28": "refused the login; check user, password and pg_hba.conf",
    "3D000": "has no such database; create it, or name another",
    "3F000": "has no such schema; make an installation with `clepsydra init`",
    "42501": "does not permit it to this user; grant what docs/postgres.md lists",
    "42704": "refused the session's settings; it may be too old, or not be PostgreSQL",
    "42P01": "lacks a table; make an installation with `clepsydra init`",
    "XX001": "has found its data to be corrupt; restore a backup",
    "XX002": "has found an index to be corrupt; look at its disk, and reindex",
}


def is_certainly_not_done(error: Exception) -> bool:
    """Whether the statement that failed with this certainly has no effect.

    The server rolls back a statement for which it reports an error. A connection that ends during a statement leaves
    its outcome unknown.
    """
    if not isinstance(error, asyncpg.PostgresError):
        # With an InterfaceError the driver did not send the statement.
        return isinstance(error, asyncpg.InterfaceError)
    ends_the_connection = error.sqlstate.startswith("08") or error.sqlstate in ("57P01", "57P02", "57P05")
    return not ends_the_connection


def is_retryable(error: Exception) -> bool:
    return _meaning(error)[0] is Unavailable


def translate(error: Exception, shown: str, *, may_be_done: bool = False) -> StoreError:
    """An error of the driver as one of the port's; with `may_be_done`, the failed statement may have taken effect."""
    kind, sentence = _meaning(error)
    sentence = f"the store {shown} {sentence}"
    return OutcomeUnknown(f"{sentence}; the call may have taken effect") if may_be_done else kind(sentence)


def _meaning(error: Exception) -> tuple[type[StoreError], str]:
    if isinstance(error, asyncpg.PostgresError):
        return _meaning_of_state(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            Unusable,
            f"has a certificate that is not trusted: {error.verify_message}; check sslrootcert and the host",
        )
    if isinstance(error, asyncpg.ClientConfigurationError):
        return Unusable, f"cannot be connected to as the URL says: {error}"
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return Unavailable, "has no host that accepts writes; name the primary in the URL"
    if isinstance(error, TimeoutError):
        return Unavailable, "did not answer in time; look at its load and at the network"
    return Unavailable, f"cannot be reached: {error}"


def _meaning_of_state(error: asyncpg.PostgresError) -> tuple[type[StoreError], str]:
    for key in (error.sqlstate, error.sqlstate[:2]):
        if key in _UNUSABLE:
            return Unusable, f"{_UNUSABLE[key]} ({error})"
        if key in _UNAVAILABLE:
            return Unavailable, f"{_UNAVAILABLE[key]} ({error})"
    return Unusable, f"failed: {error.sqlstate}: {error}"
