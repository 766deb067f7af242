"""A node's way to the store: the port, with everything that can go wrong between a caller and a database.

Calls take turns of the event loop there and back, or time, so that others act in between.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Any, TypeVar

from clepsydra.core.times import seconds
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import (
    Acquired,
    Action,
    Advance,
    AdvanceOutcome,
    Audit,
    Heartbeat,
    Inspection,
    Lock,
    LockInfo,
    Mark,
    Page,
    Put,
    PutResult,
    Row,
    StalePage,
    Stats,
    Version,
)
from tests.simulation.faults import CallFault, TroubledCall
from tests.simulation.plan import Plan
from tests.simulation.processes import Process
from tests.simulation.weather import Weather
from tests.simulation.witness import Witness

T = TypeVar("T")
Apply = Callable[[], Awaitable[T]]


class Line:
    """What stays of a node when its process is started anew: its randomness, and how many calls it has made."""

    def __init__(self, name: str, plan: Plan) -> None:
        self.name = name
        self.random = random.Random(f"line {plan.seed} {name}")
        self.counts: Counter[str] = Counter()
        self.troubles = {(call.method, call.nth): call for call in plan.calls if call.node == name}
        self.slow_share = plan.slow_share
        self.latency_us = plan.latency_us
        self.wakeups_are_lost = plan.wakeups_are_lost


class Wire:
    """The port, as one process sees it."""

    def __init__(self, line: Line, process: Process, witness: Witness, weather: Weather) -> None:
        self._line = line
        self._process = process
        self._witness = witness
        self._weather = weather
        self.is_severed = False

    @property
    def shards(self) -> int:
        return self._witness.shards

    async def close(self) -> None:
        """The store stays open: it belongs to the run."""

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        return await self._send("put", lambda: self._witness.put(self._process.name, puts))

    async def get(self, action_ids: Sequence[str]) -> list[Action | None]:
        return await self._send("get", lambda: self._witness.get(action_ids))

    async def list_actions(self, after_id: str | None, limit: int) -> list[Action]:
        return await self._send("list_actions", lambda: self._witness.list_actions(after_id, limit))

    async def running(self, action_ids: Sequence[str], after_us: int, until_us: int) -> Inspection:
        return await self._send("running", lambda: self._witness.running(action_ids, after_us, until_us))

    async def inspect(self, action_id: str, until_us: int) -> Inspection:
        return await self._send("inspect", lambda: self._witness.inspect(action_id, until_us))

    async def versions(self, action_ids: Sequence[str]) -> list[Version | None]:
        return await self._send("versions", lambda: self._witness.versions(action_ids))

    async def acquire(self, lock_guid: str, worker: str, now_us: int, stale_before_us: int) -> Acquired | None:
        if self._weather.broken_locks:
            shard_id = self._line.random.randrange(self.shards)
            return await self._send("acquire", lambda: self._witness.acquire_falsely(lock_guid, shard_id))
        name = self._process.name
        return await self._send(
            "acquire", lambda: self._witness.acquire(name, lock_guid, worker, now_us, stale_before_us)
        )

    async def heartbeat(self, locks: Sequence[Lock], now_us: int, stale_before_us: int) -> Heartbeat:
        if self._weather.broken_locks:
            return await self._send("heartbeat", self._witness.heartbeat_falsely)
        return await self._send("heartbeat", lambda: self._witness.heartbeat(locks, now_us, stale_before_us))

    async def release(self, locks: Sequence[Lock], now_us: int) -> None:
        await self._send("release", lambda: self._witness.release(locks, now_us))

    async def due(
        self,
        shard_id: int,
        *,
        incoming_from_us: int,
        incoming_limit: int,
        from_us: int,
        until_us: int,
        limit: int,
        after: tuple[str, str] = ("", ""),
    ) -> Page:
        return await self._send(
            "due",
            lambda: self._witness.due(
                shard_id,
                incoming_from_us=incoming_from_us,
                incoming_limit=incoming_limit,
                from_us=from_us,
                until_us=until_us,
                limit=limit,
                after=after,
            ),
        )

    async def soon(self, shard_id: int, *, incoming_from_us: int, until_us: int, limit: int) -> list[Row]:
        bounds = {"incoming_from_us": incoming_from_us, "until_us": until_us, "limit": limit}
        return await self._send("soon", lambda: self._witness.soon(shard_id, **bounds))

    async def migrate(self, rows: Sequence[Row], mark: Mark) -> int:
        return await self._send("migrate", lambda: self._witness.migrate(self._process.name, rows, mark))

    async def drop(self, rows: Sequence[Row]) -> None:
        await self._send("drop", lambda: self._witness.drop(self._process.name, rows))

    async def check_writable(self) -> None:
        """No process of a simulation asks."""

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        return await self._send("advance", lambda: self._witness.advance(self._process.name, advances, mark))

    async def stale(self, shard_id: int, after: tuple[int, str, str] | None, from_us: int, limit: int) -> StalePage:
        return await self._send("stale", lambda: self._witness.stale(shard_id, after, from_us, limit))

    async def wait(self, shard_id: int, timeout_s: float) -> bool:
        if self._line.wakeups_are_lost:
            await asyncio.sleep(timeout_s)
            return False
        return await self._witness.wait(shard_id, timeout_s)

    async def now(self) -> int:
        return await self._send("now", self._witness.now)

    async def locks(self) -> list[LockInfo]:
        return await self._send("locks", self._witness.locks)

    async def stats(self, now_us: int) -> Stats:
        return await self._send("stats", lambda: self._witness.stats(now_us))

    async def audit(self, limit: int) -> Audit:
        return await self._send("audit", lambda: self._witness.audit(limit))

    async def _send(self, method: str, apply: Apply[T]) -> T:
        if self.is_severed:
            raise Unavailable("the run is over")
        self._line.counts[method] += 1
        trouble = None
        if not self._weather.is_fair:
            trouble = self._line.troubles.get((method, self._line.counts[method]))
        await self._travel()
        if self._weather.outages:
            raise Unavailable("the store is out of order")
        if trouble is None:
            answer = await apply()
        else:
            self._weather.mark(trouble.fault.value)
            answer = await _TROUBLES[trouble.fault](self, trouble, apply)
        await self._travel()
        return answer

    async def _travel(self) -> None:
        """Half of the way nobody can come in between, and sometimes it takes time."""
        line = self._line
        luck = line.random.random()
        if luck < line.slow_share:
            await asyncio.sleep(seconds(round(line.random.random() * line.latency_us)))
        elif luck < 0.5:
            await asyncio.sleep(0)

    async def _wait(self, delay_us: int) -> None:
        await asyncio.sleep(seconds(self._weather.while_faults_last(delay_us)))

    async def _fail_before(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        raise Unavailable("the store refused it")

    async def _fail_after(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        await apply()
        raise OutcomeUnknown("the answer was lost")

    async def _lose(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        raise OutcomeUnknown("the call was lost")

    async def _apply_late(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        self._later(trouble.delay_us, apply)
        raise OutcomeUnknown("the call is still on its way")

    async def _be_slow_there(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        await self._wait(trouble.delay_us)
        return await apply()

    async def _be_slow_back(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        answer = await apply()
        await self._wait(trouble.delay_us)
        return answer

    async def _hang(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        if trouble.delay_us % 2:
            await apply()
        await self._wait(self._weather.faults_end_us)
        raise OutcomeUnknown("the store did not answer for a long time")

    async def _repeat(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        await apply()
        return await apply()

    async def _repeat_late(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        answer = await apply()
        self._later(trouble.delay_us, apply)
        return answer

    async def _kill_before(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        await self._process.die()

    async def _kill_after(self, trouble: TroubledCall, apply: Apply[T]) -> T:
        await apply()
        await self._process.die()

    def _later(self, delay_us: int, apply: Apply[Any]) -> None:
        """What is on its way arrives whatever becomes of its sender: it belongs to no process."""

        async def arrive() -> None:
            await asyncio.sleep(seconds(delay_us))
            await apply()

        self._witness.keep(asyncio.get_running_loop().create_task(arrive(), context=Context()))


_TROUBLES: dict[CallFault, Callable[[Wire, TroubledCall, Apply[Any]], Awaitable[Any]]] = {
    CallFault.FAILS_BEFORE: Wire._fail_before,
    CallFault.FAILS_AFTER: Wire._fail_after,
    CallFault.IS_LOST: Wire._lose,
    CallFault.COMES_LATE: Wire._apply_late,
    CallFault.IS_SLOW_THERE: Wire._be_slow_there,
    CallFault.IS_SLOW_BACK: Wire._be_slow_back,
    CallFault.HANGS: Wire._hang,
    CallFault.REPEATED: Wire._repeat,
    CallFault.REPEATED_LATE: Wire._repeat_late,
    CallFault.KILLS_BEFORE: Wire._kill_before,
    CallFault.KILLS_AFTER: Wire._kill_after,
}
