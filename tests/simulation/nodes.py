"""The nodes of a run: the real scheduler and real workers, each in a process that can die and be started again."""

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import asdict
from typing import Any, NamedTuple

import structlog

from clepsydra.core.clock import DisciplinedClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, seconds
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.errors import OutcomeUnknown, StoreError, Unavailable
from clepsydra.store.store_clock import read_store_clock
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker
from tests.simulation.handlers import Scripts
from tests.simulation.history import History
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.plan import Plan
from tests.simulation.processes import Process, State
from tests.simulation.verdict import Verdict
from tests.simulation.weather import Weather
from tests.simulation.wire import Line, Wire
from tests.simulation.witness import Witness

SILENT = structlog.wrap_logger(structlog.PrintLogger(), wrapper_class=structlog.make_filtering_bound_logger(50))
_FOLLOW_S = 5.0
# A process that ended by itself, or by its handler, is started again after this.
_DOWN_US = 500 * MILLISECOND_US


class Node:
    """A place for one process after another."""

    def __init__(self, name: str, number: int, plan: Plan, surroundings: "Surroundings") -> None:
        self.name = name
        self.process: Process | None = None
        self._surroundings = surroundings
        self._line = Line(name, plan)
        loop = surroundings.loop
        epoch_us = surroundings.epoch_us + plan.skew_us[number]
        self.machine = VirtualClock(loop, epoch_us, plan.drift_ppm[number])
        self._ids = Ids(random.Random(f"ids {plan.seed} {name}"))
        self._starts = 0
        self._down_us = _DOWN_US
        self._wires: list[Wire] = []
        self.processes: list[Process] = []

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.state is not State.DEAD

    def start(self) -> None:
        around = self._surroundings
        if self.is_up or around.is_over:
            return
        self._starts += 1
        process = Process(around.loop, f"{self.name}#{self._starts}")
        process.when_dead.append(lambda: self._died(process))
        around.history.note(process.name, "started")
        wire = Wire(self._line, process, around.witness, around.weather)
        self.process = process
        self.processes.append(process)
        self._wires.append(wire)
        process.start(self._live(process, wire))

    async def _live(self, process: Process, wire: Wire) -> None:
        """What the process does, and what its supervisor does when it ends by itself."""
        around = self._surroundings
        try:
            await self._run(process, wire)
        except (Unavailable, OutcomeUnknown) as error:
            # At its start a process gives up if the store is not there.
            around.weather.mark("a worker was stopped by a failing store")
            around.history.note(process.name, "gave up", str(error))
        except StoreError as error:
            around.verdict.violated("only an unusable store ends a process", repr(error))
        except Exception as error:  # a defect: the verdict says so
            around.verdict.violated("nothing ends a process but a signal", repr(error))
        self.process = None
        self._restart()

    def kill(self, steps: int, down_us: int) -> None:
        """Let the process die after so many of its callbacks, and stay down for a while."""
        if self.process is not None and self.is_up:
            self._down_us = down_us
            self.process.doom(steps)

    def _died(self, process: Process) -> None:
        self._surroundings.history.note(process.name, "died")
        self._restart()

    def _restart(self) -> None:
        # Whoever restarts a process is not part of it.
        around = self._surroundings
        down_us, self._down_us = self._down_us, _DOWN_US
        around.loop.call_later(seconds(down_us), self.start, context=around.context)

    async def _run(self, process: Process, wire: Wire) -> None:
        raise NotImplementedError

    def bury(self) -> None:
        for wire in self._wires:
            wire.is_severed = True
        for process in self.processes:
            process.bury()


class Surroundings:
    """What all nodes of a run share."""

    def __init__(
        self,
        loop: VirtualLoop,
        clock: VirtualClock,
        history: History,
        weather: Weather,
        verdict: Verdict,
        witness: Witness,
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.epoch_us = clock.epoch_us
        self.history = history
        self.weather = weather
        self.verdict = verdict
        self.witness = witness
        self.is_over = False
        self.context = copy_context()


class WorkerNode(Node):
    def __init__(self, number: int, plan: Plan, surroundings: Surroundings, scripts: Scripts) -> None:
        super().__init__(f"worker-{number}", number, plan, surroundings)
        self._settings = WorkerSettings(**asdict(plan.worker))
        self._scripts = scripts
        self.worker: Worker | None = None
        # Of the processes that ended gracefully.
        self.tallies: list[Tally] = []

    async def _run(self, process: Process, wire: Wire) -> None:
        targets = Targets(self._settings, self._scripts.registry(process), SILENT)
        worker = Worker(wire, targets, self.machine, self._ids, self._settings, process.name, SILENT)
        self.worker = worker
        await worker.run()
        self.tallies.append(worker.tally)
        self._surroundings.history.note(process.name, "drained", *_numbers(worker.tally))

    def drain(self) -> None:
        if self.is_up and self.worker is not None:
            self.worker.stop()

    def has_overdue_attempt(self) -> bool:
        """Whether an attempt still runs here though its time is up."""
        now_us = self._surroundings.clock.now_us()
        attempts = [] if self.worker is None else self.worker.attempts_in_flight()
        return any(attempt.deadline_us < now_us for attempt in attempts)


class Serving(NamedTuple):
    """A call that a scheduler carries out."""

    answer: "asyncio.Future[Any]"
    task: "asyncio.Task[Any]"


class SchedulerNode(Node):
    def __init__(self, number: int, plan: Plan, surroundings: Surroundings) -> None:
        super().__init__(f"scheduler-{number}", plan.workers + number, plan, surroundings)
        self._settings = SchedulerSettings(deleted_retention_ms=30_000, batch=plan.worker.batch, pending_items=40)
        self.scheduler: Scheduler | None = None

    async def _run(self, process: Process, wire: Wire) -> None:
        clock = DisciplinedClock(self.machine)
        await read_store_clock(wire, clock)
        self.scheduler = Scheduler(wire, clock, self._ids, self._settings)
        process.when_dead.append(self._forget)
        while True:
            await asyncio.sleep(_FOLLOW_S)
            try:
                await read_store_clock(wire, clock)
            except (Unavailable, OutcomeUnknown):
                continue

    def _forget(self) -> None:
        self.scheduler = None

    def serve(self, call: Callable[[Scheduler], Any]) -> "Serving | None":
        """Carry out a call in this process. None: nobody listens. A call ends with the process that serves it."""
        process, scheduler = self.process, self.scheduler
        if process is None or scheduler is None or process.state is State.DEAD:
            return None
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def carry_out() -> None:
            try:
                result = await call(scheduler)
            except Exception as error:  # the client judges it
                result = error
            if not answer.done():
                answer.set_result(result)

        def lose() -> None:
            if not answer.done():
                answer.set_result(ConnectionError("the scheduler has gone"))

        process.when_dead.append(lose)
        return Serving(answer, process.start(carry_out()))


def _numbers(tally: Tally) -> list[tuple[str, int]]:
    return [(name, getattr(tally, name)) for name in tally.__slots__ if getattr(tally, name)]
