"""A process of the simulated fleet: it can be killed, and held back, between any two of its callbacks.

A killed process stops in the middle of whatever it did: no callback of it runs again, no `finally`, no cancellation.
What it would have done next is kept until the run has been judged, so that no garbage collector closes its coroutines.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from enum import Enum
from typing import Any, NoReturn

from tests.simulation.loop import GATE, VirtualLoop


class State(Enum):
    RUNNING = "running"
    STALLED = "stalled"
    DEAD = "dead"


class Process:
    def __init__(self, loop: VirtualLoop, name: str) -> None:
        self.name = name
        self.state = State.RUNNING
        self._loop = loop
        self._kept: list[asyncio.Handle] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._steps_left: int | None = None
        self._context = copy_context()
        self._context.run(GATE.set, self)
        # Called at the moment of its death, from outside of it.
        self.when_dead: list[Callable[[], None]] = []

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in this process: whatever it starts belongs to the process too."""
        return self._loop.create_task(coroutine, context=self._context.copy())

    def admits(self, handle: asyncio.Handle) -> bool:
        if self.state is State.RUNNING:
            if self._steps_left is None:
                return True
            self._steps_left -= 1
            if self._steps_left > 0:
                return True
            self.kill()
        self._kept.append(handle)
        return False

    def kill(self) -> None:
        if self.state is State.DEAD:
            return
        self.state = State.DEAD
        # Tasks are referred to by what wakes them; what will never wake them may let them go.
        self._tasks = asyncio.all_tasks(self._loop)
        for tell in self.when_dead:
            tell()

    async def die(self) -> NoReturn:
        """To be awaited by the process itself, at the place where it dies."""
        self.kill()
        await self._loop.create_future()
        raise AssertionError("the dead do not return")

    def doom(self, steps: int) -> None:
        """Let it die after this many callbacks more: between any two awaits, that is."""
        self._steps_left = steps

    def stall(self) -> None:
        if self.state is State.RUNNING:
            self.state = State.STALLED

    def resume(self) -> None:
        if self.state is State.STALLED:
            self.state = State.RUNNING
            self._hand_back()

    def bury(self) -> None:
        """After the run: let what it would have done run to its end, so that nothing is left over."""
        self.state = State.RUNNING
        self._steps_left = None
        self._hand_back()

    def _hand_back(self) -> None:
        kept, self._kept = self._kept, []
        self._loop.hand_back(kept)
