"""A clock that steps back leaves heartbeats of the future behind: a dead worker's shards do not wait for it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from clepsydra.core.times import SECOND_US
from tests.chaos.action import Actor, quick
from tests.chaos.caller import Caller
from tests.chaos.postgres import PostgresChaos
from tests.chaos.stores import ChaosStore, SqliteChaos
from tests.chaos.tables import opened
from tests.chaos.until import until
from tests.chaos.world import World

# Nobody would wait for so long.
_STEP_US = 3600 * SECOND_US
_SHARDS = 8
_ACTIONS = 60


@pytest.fixture(params=["sqlite", "postgres"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    stores: dict[str, ChaosStore] = {
        "sqlite": SqliteChaos(tmp_path),
        "postgres": PostgresChaos(tmp_path, disk_can_fill=False),
    }
    async with World(tmp_path, stores[request.param], workers=1, shards=_SHARDS) as started:
        await started.ready()
        yield started


async def test_a_dead_workers_shards_are_taken_over_after_a_clock_step(
    world: World, call_at: Callable[[str], Caller]
) -> None:
    actor = Actor(world, call_at(world.server))
    [worker] = world.workers

    async def holds_every_shard() -> bool:
        async with opened(world.store.url) as store:
            return sum(lock.locked for lock in await store.locks()) == _SHARDS

    await until(holds_every_shard, "the worker holds every shard")
    worker.kill()
    left_behind = await world.store.step_clock_back(_STEP_US)
    assert left_behind >= 1
    for n in range(_ACTIONS):
        await actor.create(f"a{n}", quick(), due_us=0)
    worker.start()

    async def all_have_succeeded() -> bool:
        states = [entry.state for entry in (await actor.entries()).values()]
        return states == ["SUCCEEDED"] * _ACTIONS

    await until(all_have_succeeded, "the new worker works on every shard")
    await world.audit()
    assert world.troubles == []
