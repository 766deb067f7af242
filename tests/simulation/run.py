"""One run: the world of a plan is built, lives through its faults, heals, pays what it owes, and is judged."""

import asyncio
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, SECOND_US, seconds
from clepsydra.store.memory import MemoryStore
from clepsydra.store.sqlite import SqliteStore
from tests.conformance.worlds import content_of
from tests.simulation.attempts import AttemptRules
from tests.simulation.clients import Client
from tests.simulation.handlers import Scripts
from tests.simulation.history import History
from tests.simulation.loop import Deadlock, VirtualClock, VirtualLoop
from tests.simulation.nemesis import Nemesis, Tables
from tests.simulation.nodes import Node, SchedulerNode, Surroundings, WorkerNode
from tests.simulation.oracle import Oracle
from tests.simulation.plan import Plan
from tests.simulation.processes import Process
from tests.simulation.promises import Promises
from tests.simulation.verdict import Verdict, Violation
from tests.simulation.weather import Weather
from tests.simulation.wire import Line, Wire
from tests.simulation.witness import Witness

# Beyond this many callbacks a run does not come to rest any more.
_STEPS_MAX = 300_000
# A clock that strays by 500 ppm, from one heartbeat's answer until the lock has run out.
_DRIFT = 0.0005
_RUN_US = 100 * SECOND_US
_LOOK_S = 0.25


@dataclass(frozen=True)
class Report:
    """What a run came to."""

    plan: Plan
    violation: Violation | None
    history: History
    marks: Mapping[str, int]
    ends: Mapping[str, int]
    steps: int
    digest: str


def run_plan(plan: Plan, specification: type[MemoryStore] = MemoryStore) -> Report:
    """Carry out a plan. Another specification is for tests of the oracle: it breaks a promise on purpose."""
    loop = VirtualLoop(random.Random(f"loop {plan.seed}"))
    asyncio.set_event_loop(loop)
    with tempfile.TemporaryDirectory() if plan.store == "sqlite" else _Nothing() as directory:
        try:
            return _World(loop, plan, directory, specification).run()
        finally:
            asyncio.set_event_loop(None)
            loop.close()


class _Nothing:
    def __enter__(self) -> str:
        return ""

    def __exit__(self, *_: object) -> None:
        pass


class _World:
    def __init__(self, loop: VirtualLoop, plan: Plan, directory: str, specification: type[MemoryStore]) -> None:
        self._loop = loop
        self._plan = plan
        self._clock = clock = VirtualClock(loop)
        self._memory = specification(plan.shards, clock)
        self._path = str(Path(directory) / "store.db") if directory else None
        self._sqlite: SqliteStore | None = None
        if self._path is not None:
            loop.run_until_complete(SqliteStore.install(self._path, plan.shards))
            self._sqlite = loop.run_until_complete(SqliteStore.open_inline(self._path, clock))
        self._history = history = History(clock)
        self._verdict = verdict = Verdict(history)
        self._weather = weather = Weather(clock, clock.now_us() + plan.faults_end_us)
        early_us = round(plan.worker.lock_life_ms * MILLISECOND_US * _DRIFT) + 2 if any(plan.drift_ppm) else 0
        self._rules = AttemptRules(clock, weather, verdict, early_us)
        self._oracle = Oracle(self._memory, history, weather, verdict, self._rules)
        self._witness = Witness(self._memory, self._sqlite, self._oracle)
        self._around = Surroundings(loop, clock, history, weather, verdict, self._witness)
        scripts = Scripts(plan, self._oracle, weather)
        self._workers = [WorkerNode(number, plan, self._around, scripts) for number in range(plan.workers)]
        self._schedulers = [SchedulerNode(number, plan, self._around) for number in range(plan.schedulers)]
        self._nodes: dict[str, Node] = {node.name: node for node in (*self._workers, *self._schedulers)}

    def run(self) -> Report:
        try:
            self._loop.run_until_complete(self._until_judged())
        except Deadlock as error:
            self._verdict.violated("the fleet goes on", str(error))
        self._verdict.is_final = True
        self._history.close()
        steps = self._loop.steps
        self._bury()
        return Report(
            self._plan,
            self._verdict.violation,
            self._history,
            dict(self._weather.marks),
            self._rules.books.ends(),
            steps,
            self._history.digest(),
        )

    async def _until_judged(self) -> None:
        broken = asyncio.ensure_future(self._verdict.is_broken.wait())
        living = asyncio.ensure_future(self._live())
        tired = asyncio.ensure_future(self._tire())
        await asyncio.wait((broken, living, tired), return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()

    async def _tire(self) -> None:
        while self._loop.steps < _STEPS_MAX:  # noqa: ASYNC110 - it is virtual time
            await asyncio.sleep(1)
        self._verdict.violated("the fleet comes to rest", f"{self._loop.steps} steps were not enough")

    async def _live(self) -> None:
        for node in self._nodes.values():
            node.start()
        nemesis = asyncio.ensure_future(self._nemesis().run())
        # A scheduler that hears nothing from the store for the whole run drifts for as long.
        early_us = round(_RUN_US * _DRIFT) if any(self._plan.drift_ppm) else 0
        promises = Promises(self._rules.books, self._verdict, self._clock, early_us)
        clients = [
            Client(
                number,
                plan,
                len(self._plan.scripts),
                self._schedulers,
                self._plan.seed,
                self._history,
                self._weather,
                self._verdict,
                promises,
            )
            for number, plan in enumerate(self._plan.clients)
        ]
        running = [asyncio.ensure_future(client.run()) for client in clients]
        await nemesis
        await self._heal()
        await asyncio.gather(*running)
        await self._pay()
        await self._stop()

    def _nemesis(self) -> Nemesis:
        plan = self._plan
        wire = Wire(Line("repair", plan), Process(self._loop, "repair"), self._witness, Weather(self._clock, 0))
        tables = Tables(self._memory, self._path, self._rules.books)
        ids = Ids(random.Random(f"repair {plan.seed}"))
        return Nemesis(plan, self._nodes, tables, self._weather, self._history, wire, ids)

    async def _heal(self) -> None:
        """From some time after the last fault on, everything has to be punctual."""
        worker = self._plan.worker
        settle_us = 2 * (worker.lock_life_ms + worker.poll_max_ms + worker.grace_ms) * MILLISECOND_US
        self._rules.punctual_from_us = self._clock.now_us() + settle_us
        self._rules.late_us = self._late_us()

    def _late_us(self) -> int:
        """How late an attempt may begin when all is well."""
        worker, plan = self._plan.worker, self._plan
        look_ms = worker.poll_max_ms + 4 * plan.latency_us // MILLISECOND_US + 100
        rounds = -(-plan.shards // (plan.workers * worker.loops))
        # With fewer loops than shards, each shard waits for its turn, and turns are passed on by heartbeats.
        waiting_ms = (rounds - 1) * (2 * worker.heartbeat_ms + worker.poll_max_ms)
        # With fewer places than actions, each attempt waits for a place.
        places_ms = len(plan.scripts) * 500 if worker.attempts * plan.workers < 2 * len(plan.scripts) else 0
        return (2 * look_ms + waiting_ms + places_ms) * MILLISECOND_US

    async def _pay(self) -> None:
        """Everything that is owed is done within a bound."""
        deadline_us = self._clock.now_us() + 60 * SECOND_US
        if self._oracle.has_endless():
            # What never ends has to be punctual for a while.
            assert self._rules.punctual_from_us is not None
            await asyncio.sleep(seconds(self._rules.punctual_from_us - self._clock.now_us() + 2 * SECOND_US))
        while owed := self._oracle.owed(self._clock.now_us()):
            if self._clock.now_us() >= deadline_us:
                self._verdict.violated("everything owed is done once all is well", "; ".join(owed))
            await asyncio.sleep(_LOOK_S)

    async def _stop(self) -> None:
        """Drain the workers: then their own counts have to add up, and nothing may be left in flight."""
        self._around.is_over = True
        while any(node.is_up for node in self._workers):
            for node in self._workers:
                node.drain()
            await asyncio.sleep(_LOOK_S)
        for node in self._workers:
            for tally in node.tallies:
                ended = tally.succeeded + tally.failed + tally.interrupted + tally.superseded
                if ended != tally.begun:
                    self._verdict.violated("a worker's counts add up", f"{node.name}: {tally}")
        self._oracle.check_books()
        self._oracle.check_rows()
        if self._sqlite is not None and await content_of(self._sqlite) != await content_of(self._memory):
            self._verdict.violated("the store answers as the specification does", "their contents differ")

    def _bury(self) -> None:
        """Let everything that is left end, so that nothing of this run leaks into the next."""
        self._around.is_over = True
        self._loop.set_exception_handler(lambda loop, context: None)
        for node in self._nodes.values():
            node.bury()
        for _ in range(20):
            left = asyncio.all_tasks(self._loop)
            if not left:
                break
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(left, timeout=seconds(SECOND_US)))
        if self._sqlite is not None:
            self._loop.run_until_complete(self._sqlite.close())
