"""The handlers of a run: what each call of one does is written in the plan, and the oracle sees it start and end."""

import asyncio
from typing import NoReturn

from clepsydra.worker.handlers.registry import DoNotRetry, Registry, RetryAfter
from clepsydra.worker.running import Context
from tests.simulation.faults import Behaviour
from tests.simulation.ledger import Doing
from tests.simulation.oracle import Oracle
from tests.simulation.plan import Plan
from tests.simulation.processes import Process
from tests.simulation.weather import Weather

HANDLER, ANOTHER_HANDLER = "scripted", "scripted-otherwise"
_SHORT_S = 0.05
_NEVER_S = 3600.0


class NotToday(Exception):
    """The failure of a handler that fails."""


class Scripts:
    """How far each action's script has been played, whoever played it."""

    def __init__(self, plan: Plan, oracle: Oracle, weather: Weather) -> None:
        self._scripts = [iter(script) for script in plan.scripts]
        self._oracle = oracle
        self._weather = weather

    def registry(self, process: Process) -> Registry:
        """What a worker in that process can execute."""

        async def scripted(context: Context) -> None:
            self._oracle.saw_start(process.name, context)
            doing = Doing.CANCELLED
            try:
                await self._play(self._next(context.action_id), process, context)
                doing = Doing.SUCCEEDED
            except (NotToday, RetryAfter, DoNotRetry):
                doing = Doing.FAILED
                raise
            finally:
                self._oracle.saw_end(process.name, context, doing)

        registry = Registry()
        for name in (HANDLER, ANOTHER_HANDLER):
            registry.handler(name)(scripted)
        return registry

    def _next(self, action_id: str) -> Behaviour:
        behaviour = next(self._scripts[number_of(action_id)], Behaviour.SUCCEEDS)
        if self._weather.is_fair and behaviour in (Behaviour.HANGS, Behaviour.KILLS):
            return Behaviour.SUCCEEDS
        self._weather.mark(behaviour.value)
        return behaviour

    async def _play(self, behaviour: Behaviour, process: Process, context: Context) -> None:
        if behaviour is Behaviour.KILLS:
            self._oracle.saw_killing(process.name, context)
            await process.die()
        if behaviour is Behaviour.HANGS:
            await asyncio.sleep(_NEVER_S)
        await asyncio.sleep(_SHORT_S)
        if behaviour in _FAILURES:
            _fail(behaviour)


_FAILURES = (Behaviour.FAILS, Behaviour.ASKS_FOR_TIME, Behaviour.GIVES_UP)


def _fail(behaviour: Behaviour) -> NoReturn:
    if behaviour is Behaviour.ASKS_FOR_TIME:
        raise RetryAfter(0.3)
    if behaviour is Behaviour.GIVES_UP:
        raise DoNotRetry
    raise NotToday


def action_id_of(number: int) -> str:
    return f"a{number}"


def number_of(action_id: str) -> int:
    return int(action_id[1:])
