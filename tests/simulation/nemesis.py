"""Carries out the faults of a plan at their times, and takes all of them back when the time of faults is over."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import apsw

from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, seconds
from clepsydra.store.memory import MemoryStore
from clepsydra.store.memory.store import Key
from clepsydra.store.port import Queue
from clepsydra.store.repair import repair
from tests.simulation.faults import (
    DRIFTING_CLOCKS,
    LOST_WAKEUPS,
    SKEWED_CLOCKS,
    STALLED_BEYOND_LOCK,
    STALLED_BEYOND_TIMEOUT,
    BrokenLocks,
    ClockStep,
    Corruption,
    Damage,
    Drain,
    Kill,
    Outage,
    Stall,
    TimedFault,
)
from tests.simulation.handlers import action_id_of
from tests.simulation.history import History
from tests.simulation.ledger import Books
from tests.simulation.nodes import Node, WorkerNode
from tests.simulation.plan import Plan
from tests.simulation.processes import State
from tests.simulation.weather import Weather
from tests.simulation.wire import Wire


class Nemesis:
    def __init__(
        self,
        plan: Plan,
        nodes: Mapping[str, Node],
        tables: "Tables",
        weather: Weather,
        history: History,
        repairing: Wire,
        ids: Ids,
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._tables = tables
        self._weather = weather
        self._history = history
        # The way to the store of whoever repairs it.
        self._repairing = repairing
        self._ids = ids

    async def run(self) -> None:
        """Everything that the plan lists, and then fair weather."""
        self._mark_circumstances()
        tasks = [asyncio.ensure_future(self._at_its_time(fault)) for fault in self._plan.timed]
        await asyncio.sleep(seconds(self._plan.faults_end_us))
        self._weather.clear_up()
        self._history.note("nemesis", "leaves")
        for node in self._nodes.values():
            if node.process is not None:
                node.process.resume()
        await asyncio.gather(*tasks)
        for node in self._nodes.values():
            node.start()

    def _mark_circumstances(self) -> None:
        plan = self._plan
        for mark, is_so in (
            (SKEWED_CLOCKS, any(plan.skew_us)),
            (DRIFTING_CLOCKS, any(plan.drift_ppm)),
            (LOST_WAKEUPS, plan.wakeups_are_lost),
        ):
            if is_so:
                self._weather.mark(mark)

    async def _at_its_time(self, fault: TimedFault) -> None:
        await asyncio.sleep(seconds(fault.at_us))
        if self._weather.is_fair:
            return
        self._history.note("nemesis", type(fault).__name__, *fault[1:])
        self._weather.mark(type(fault).__name__)
        await _DEEDS[type(fault)](self, fault)

    async def _last(self, for_us: int) -> None:
        await asyncio.sleep(seconds(self._weather.while_faults_last(for_us)))

    async def _kill(self, fault: Kill) -> None:
        self._nodes[fault.node].kill(fault.steps, self._weather.while_faults_last(fault.down_us))

    async def _drain(self, fault: Drain) -> None:
        node = self._nodes[fault.node]
        assert isinstance(node, WorkerNode)
        node.drain()

    async def _stall(self, fault: Stall) -> None:
        node = self._nodes[fault.node]
        process, lasts_us = node.process, self._weather.while_faults_last(fault.for_us)
        if process is not None:
            process.stall()
            await asyncio.sleep(seconds(lasts_us))
            if process.state is State.STALLED:
                self._mark_stall(node, lasts_us)
            process.resume()

    def _mark_stall(self, node: Node, lasted_us: int) -> None:
        if lasted_us > self._plan.worker.lock_life_ms * MILLISECOND_US:
            self._weather.mark(STALLED_BEYOND_LOCK)
        if isinstance(node, WorkerNode) and node.has_overdue_attempt():
            self._weather.mark(STALLED_BEYOND_TIMEOUT)

    async def _step_clock(self, fault: ClockStep) -> None:
        self._nodes[fault.node].machine.step(fault.by_us)

    async def _be_out_of_order(self, fault: Outage) -> None:
        self._weather.outages += 1
        await self._last(fault.for_us)
        self._weather.outages = max(0, self._weather.outages - 1)

    async def _break_locks(self, fault: BrokenLocks) -> None:
        self._weather.broken_locks += 1
        await self._last(fault.for_us)
        self._weather.broken_locks = max(0, self._weather.broken_locks - 1)

    async def _corrupt(self, fault: Corruption) -> None:
        if self._tables.damage(action_id_of(fault.action), fault.damage):
            self._weather.mark(fault.damage.value)
        await asyncio.sleep(seconds(fault.repaired_after_us))
        async with aclosing(repair(self._repairing, self._ids, slice_size=2)) as slices:
            async for done in slices:
                self._history.note("repair", "did", *done)


_DEEDS: dict[type[Any], Callable[[Nemesis, Any], Any]] = {
    Kill: Nemesis._kill,
    Drain: Nemesis._drain,
    Stall: Nemesis._stall,
    ClockStep: Nemesis._step_clock,
    Outage: Nemesis._be_out_of_order,
    BrokenLocks: Nemesis._break_locks,
    Corruption: Nemesis._corrupt,
}


class Tables:
    """The tables of the stores, to be tampered with behind the port."""

    def __init__(self, memory: MemoryStore, path: str | None, books: Books) -> None:
        self._memory = memory
        # The file of the SQLite store, if the run has one.
        self._path = path
        self._books = books

    def damage(self, action_id: str, damage: Damage) -> bool:
        """Break the invariant for one action, if there is one."""
        action = self._memory.actions.get(action_id)
        if action is None:
            return False
        live = [key for key in self._memory.rows if key[3:] == (action_id, action.guid)]
        if len(live) != 1:
            return False
        life = self._books.lives[action.guid]
        life.is_damaged = True
        if damage is Damage.ROW_LOST:
            self._lose(live[0])
        else:
            self._double(live[0])
        return True

    def _lose(self, key: Key) -> None:
        del self._memory.rows[key]
        if self._path is not None:
            _execute(self._path, _LOSE[key[0]], key[1:])

    def _double(self, key: Key) -> None:
        """Another row for a little later, as if a write had been carried out twice."""
        _, shard_id, at_us, action_id, guid = key
        row = self._memory.rows[key]
        second = (Queue.PROCESSING, shard_id, at_us + 1, action_id, guid)
        self._memory.rows[second] = type(row)(at_us + 1, row.added_to_incoming_queue_at_us)
        if self._path is not None:
            _execute(self._path, _DOUBLE, (*second[1:], row.added_to_incoming_queue_at_us))


_LOSE = {
    Queue.INCOMING: (
        "DELETE FROM incoming_queue WHERE shard_id = ? AND created_at = ? AND action_id = ? AND action_guid = ?"
    ),
    Queue.PROCESSING: (
        "DELETE FROM processing_queue WHERE shard_id = ? AND scheduled_at = ? AND action_id = ? AND action_guid = ?"
    ),
}
_DOUBLE = (
    "INSERT INTO processing_queue (shard_id, scheduled_at, action_id, action_guid, added_to_incoming_queue_at) "
    "VALUES (?, ?, ?, ?, ?)"
)


def _execute(path: str, statement: str, values: tuple[Any, ...]) -> None:
    connection = apsw.Connection(path)
    connection.pragma("synchronous", "OFF")
    connection.execute(statement, values)
    connection.close()
