"""What becomes of the lives that an action has had: many updates, a delete in the midst of an attempt, a replay."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from clepsydra.core.times import HOUR_US
from tests.chaos.action import Actor, held, quick
from tests.chaos.caller import Caller
from tests.chaos.conftest import StartWorld
from tests.chaos.side_log import Event
from tests.chaos.sizes import IS_LONG, UPDATES
from tests.chaos.until import until
from tests.chaos.world import SETTINGS

_LANES = 4
# The shortest that there is.
_PURGE = {**SETTINGS, "scheduler.deleted_retention_ms": 30_000}
# What old rows cost is measured with the defaults; whether they are collected at all, with quicker rounds.
_COLLECTING = {} if IS_LONG else {**SETTINGS, "worker.collect_pass_ms": 1_000}

CallAt = Callable[[str], Caller]


def now_us() -> int:
    return time.time_ns() // 1000


async def test_after_many_updates_one_live_row_is_left(start_world: StartWorld, call_at: CallAt) -> None:
    world = await start_world(settings=_COLLECTING, workers=1)
    actor = Actor(world, call_at(world.server))
    await actor.create("a", quick(), now_us() + HOUR_US)

    async def update() -> None:
        for _ in range(UPDATES // _LANES):
            await actor.reschedule("a", now_us() + HOUR_US)

    await asyncio.gather(*(update() for _ in range(_LANES)))
    found = await world.audited()
    assert (found["actions"], found["live_rows"]) == (1, 1)
    assert (await actor.get("a")).response.meta.revision == 1 + UPDATES

    async def one_row_is_left() -> bool:
        stats = await actor.stats()
        return stats.incoming_rows + stats.processing_rows == 1

    await until(one_row_is_left, "the old rows are gone", look_s=0.5)
    found = await world.audited()
    assert (found["live_rows"], found["stale_rows"]) == (1, 0)
    assert actor.lines(Event.STARTED) == []


async def test_an_action_deleted_in_the_midst_of_its_attempt_leaves_nothing(
    start_world: StartWorld, call_at: CallAt, tmp_path: Path
) -> None:
    world = await start_world(settings=_PURGE)
    actor = Actor(world, call_at(world.server))
    release = tmp_path / "release"
    await actor.create("a", held(release), now_us())
    attempt = await actor.started(1)

    await actor.delete("a")
    assert await actor.is_missing("a")

    release.touch()
    await until(lambda: len(actor.lines(Event.SUCCEEDED)) == 1, "the attempt ends")
    worker = actor.worker_of(attempt)
    await until(lambda: "an outcome was not accepted" in worker.said(), "its outcome is refused")
    entry = (await actor.entries())["a"]
    assert (entry.state, entry.succeeded, entry.runs) == ("DELETED", 0, 0)
    assert await actor.is_missing("a")

    async def nothing_is_left() -> bool:
        stats = await actor.stats()
        return (stats.actions, stats.incoming_rows, stats.processing_rows) == (0, 0, 0)

    await until(nothing_is_left, "the tombstone is purged", timeout_s=120, look_s=0.5)
    assert len(actor.lines(Event.STARTED)) == 1
    await world.audit()
    assert world.troubles == []


async def test_a_replayed_create_brings_nothing_back_to_life(start_world: StartWorld, call_at: CallAt) -> None:
    world = await start_world(workers=1)
    actor = Actor(world, call_at(world.server))
    due_us = now_us() + HOUR_US
    first = await actor.create("a", quick(), due_us, request_id="create-1")
    await actor.delete("a")
    again = await actor.create("a", quick(), due_us, request_id="create-1")
    assert again == first
    assert await actor.is_missing("a")
    assert (await actor.entries())["a"].state == "DELETED"
    # What was created anew is another action, and a replay of the first create does not touch it.
    second = await actor.create("a", quick(), due_us, request_id="create-2")
    assert second.meta.guid != first.meta.guid
    assert (await actor.create("a", quick(), due_us, request_id="create-1")).meta.guid == first.meta.guid
    assert (await actor.get("a")).response.meta.guid == second.meta.guid
    await world.audit()
    assert world.troubles == []
