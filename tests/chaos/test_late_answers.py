"""A store whose answers are late puts no delay's end forward: a scheduler errs to the late side."""

import time
from collections.abc import Callable
from pathlib import Path

from clepsydra.core.times import SECOND_US, duration
from clepsydra.v1.action_pb2 import Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest
from tests.chaos.action import HOLD_TIMEOUT_US, quick
from tests.chaos.caller import Caller
from tests.chaos.history import Outcome
from tests.chaos.postgres import PostgresChaos
from tests.chaos.proxy import Mode
from tests.chaos.side_log import Event, lines_in
from tests.chaos.until import until
from tests.chaos.world import World

_LATE_S = 0.25
# Longer than answers are late: by as much it would end early, if it counted from the time of a late answer.
_DELAY_US = SECOND_US
_ACTIONS = 20


def _create(n: int) -> CreateActionRequest:
    spec = Spec(
        schedule=Schedule(delay=duration(_DELAY_US)), attempt_timeout=duration(HOLD_TIMEOUT_US), handler=quick()
    )
    return CreateActionRequest(action=ScheduledAction(meta={"id": f"a{n}"}, spec=spec), request_id=f"create-{n}")


async def test_no_delay_ends_early_because_the_store_answers_late(
    tmp_path: Path, call_at: Callable[[str], Caller]
) -> None:
    store = PostgresChaos(tmp_path, disk_can_fill=False)
    async with World(tmp_path, store, workers=1) as world:
        await world.ready()
        # From its first question on: a scheduler that once knew the time better would not forget it.
        [scheduler] = world.schedulers
        scheduler.kill()
        wire = store.wires[0]
        wire.late_s = _LATE_S
        wire.set(Mode.LATE)
        scheduler.start()
        await world.ready()

        caller = call_at(world.server)
        called_us = time.time_ns() // 1000
        requests = [_create(n) for n in range(_ACTIONS)]
        answers = await caller.call_batch("BatchCreateActions", BatchCreateActionsRequest, requests)
        assert {answer.outcome for answer, _ in answers} == {Outcome.OK}, answers

        def starts() -> dict[str, int]:
            return {line.action_id: line.at_us for line in lines_in(world.side_log) if line.event is Event.STARTED}

        await until(lambda: len(starts()) == _ACTIONS, "all of them start")
        early = {name: at_us for name, at_us in starts().items() if at_us < called_us + _DELAY_US}
        assert not early, {name: (at_us - called_us) / SECOND_US for name, at_us in early.items()}
        await world.audit()
        assert world.troubles == []
