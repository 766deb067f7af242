"""Carries statements to the server, through whatever happens on the way.

A statement that was certainly not carried out is sent again while patience lasts: after a deadlock, a broken
connection, a restart, a failover. So is one of which nobody knows, because every call of the port is safe to replay;
its answer then says that it is the answer to a replay.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import asyncpg

from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.postgres.address import Address
from clepsydra.store.postgres.errors import FAILURES, certainly_not_done, is_worth_another_try, translated
from clepsydra.store.postgres.session import ANSWER_TIMEOUT_S, make_pool, statements

# With the timeouts of the last try, a call ends well before the longest time for which it may be retried.
PATIENCE_S = 5.0
# Questions about whole tables may take their time.
INSPECTION_TIMEOUT_S = 600

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5


class Answer(NamedTuple):
    rows: list[asyncpg.Record]
    # An earlier try may have been carried out, and this is what a later one found.
    is_of_replay: bool


class Patience:
    """How long a call goes on trying, over all its statements, and what it has to reckon with."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + PATIENCE_S
        self._pause_s = _FIRST_PAUSE_S
        self._failure: Exception | None = None
        # Some of the call may be done, so that no failure can say any more that nothing is.
        self.may_be_done = False

    @property
    def left_s(self) -> float:
        return self._ends_at - self._loop.time()

    def failure(self, latest: Exception) -> Exception:
        """What it failed by: that time ran out in the end says less than what went wrong before."""
        if self._failure is None or not isinstance(latest, TimeoutError):
            self._failure = latest
        return self._failure

    async def pause(self) -> None:
        """Wait before the next try, each time for longer."""
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)


class Calls:
    """One installation's statements on one pool of connections."""

    def __init__(self, address: Address, pool: asyncpg.Pool) -> None:
        self._shown = address.shown
        self._pool_size = address.pool_size
        self._pool = pool
        self._statements = statements(address.schema)
        self._is_closed = False

    @classmethod
    async def to(cls, address: Address) -> "Calls":
        return cls(address, await make_pool(address))

    async def close(self) -> None:
        """Let what is under way end, within its timeouts."""
        self._is_closed = True
        try:
            async with asyncio.timeout(PATIENCE_S + ANSWER_TIMEOUT_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def read(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        """What a statement yields that changes nothing."""
        return (await self._run(name, arguments, Patience(), changes=False)).rows

    async def change(self, name: str, *arguments: object, patience: Patience | None = None) -> Answer:
        """What a statement yields that changes something."""
        return await self._run(name, arguments, patience or Patience(), changes=True)

    async def inspect(self, *questions: tuple[str, *tuple[object, ...]]) -> list[list[asyncpg.Record]]:
        """The answers to questions about whole tables, each a statement's name and its arguments, in one snapshot."""
        patience = Patience()
        while True:
            try:
                async with (
                    self._connection(patience) as connection,
                    connection.transaction(isolation="repeatable_read", readonly=True),
                ):
                    await connection.execute(self._statements["plan_freely"])
                    return [
                        await connection.fetch(self._statements[name], *arguments, timeout=INSPECTION_TIMEOUT_S)
                        for name, *arguments in questions
                    ]
            except FAILURES as error:
                await self._bear(error, patience)

    async def _run(self, name: str, arguments: tuple[object, ...], patience: Patience, *, changes: bool) -> Answer:
        statement, is_replay = self._statements[name], False
        while True:
            try:
                async with self._connection(patience) as connection:
                    return Answer(await connection.fetch(statement, *arguments), is_replay)
            except FAILURES as error:
                is_replay |= changes and not certainly_not_done(error)
                patience.may_be_done |= is_replay
                await self._bear(error, patience)

    @asynccontextmanager
    async def _connection(self, patience: Patience) -> AsyncIterator[Any]:
        connection = await self._acquired(patience)
        try:
            yield connection
        except TimeoutError:
            # Whatever it still does, nobody waits for it any more.
            connection.terminate()
            raise
        finally:
            await self._pool.release(connection)

    async def _acquired(self, patience: Patience) -> Any:
        """A connection, as soon as there is one. What fails here was never sent."""
        while True:
            if self._is_closed:
                raise RuntimeError("the store is closed")
            try:
                return await self._pool.acquire(timeout=max(patience.left_s, 0.001))
            except FAILURES as error:
                if isinstance(patience.failure(error), TimeoutError) and self._is_exhausted():
                    raise self._exhaustion(patience) from error
                await self._bear(error, patience)

    async def _bear(self, error: Exception, patience: Patience) -> None:
        """Wait for the next try, or raise what the caller shall see."""
        failure = patience.failure(error)
        if not is_worth_another_try(error) or patience.left_s <= 0:
            raise translated(failure, self._shown, may_be_done=patience.may_be_done) from error
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            # The other connections lead to the same standby.
            await self._pool.expire_connections()
        await patience.pause()

    def _is_exhausted(self) -> bool:
        return bool(self._pool.get_size() == self._pool_size and self._pool.get_idle_size() == 0)

    def _exhaustion(self, patience: Patience) -> StoreError:
        sentence = (
            f"all {self._pool_size} connections to the store {self._shown} are in use; raise pool_size in its URL"
        )
        if patience.may_be_done:
            return OutcomeUnknown(f"{sentence}; the call may have taken effect")
        return Unavailable(sentence)
