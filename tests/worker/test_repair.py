"""A repair beside a running fleet: nothing stops, nothing is lost, and whatever was broken is executed after all."""

import asyncio
from contextlib import aclosing
from itertools import pairwise

from clepsydra.core.times import HOUR_US, SECOND_US, duration
from clepsydra.store.memory.store import Key
from clepsydra.store.port import Queue
from clepsydra.store.repair import Repaired, repair
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Periodic, Schedule
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time


def _keys(fleet: Fleet, action_id: str) -> list[Key]:
    return [key for key in fleet.store.rows if key[3] == action_id]


def _lose(fleet: Fleet, action_id: str) -> None:
    for key in _keys(fleet, action_id):
        del fleet.store.rows[key]


def _double(fleet: Fleet, action_id: str, shard_id: int) -> None:
    """Another row of the same life, in another shard, at the same time."""
    [key] = _keys(fleet, action_id)
    queue, _, at_us, _, guid = key
    fleet.store.rows[(queue, shard_id, at_us, action_id, guid)] = fleet.store.rows[key]


def _orphan(fleet: Fleet, queue: Queue, shard_id: int, action_id: str) -> None:
    """A row of an action that is not there."""
    row = next(iter(fleet.store.rows.values()))
    fleet.store.rows[(queue, shard_id, fleet.clock.now_us() + HOUR_US, action_id, fleet.ids.guid())] = row


async def _repaired(fleet: Fleet, slice_size: int = 3) -> Repaired:
    """Repair with a pause after each slice, in which the fleet goes on."""
    total = Repaired()
    async with aclosing(repair(fleet.store, fleet.ids, slice_size)) as slices:
        async for done in slices:
            total = total.plus(done)
            await asyncio.sleep(0.01)
    return total


@on_virtual_time
async def test_what_was_lost_is_executed_and_what_was_whole_is_not_disturbed() -> None:
    fleet = Fleet()
    workers = [fleet.add_worker() for _ in range(2)]
    lost, doubled, whole = ([f"{kind}-{n}" for n in range(10)] for kind in ("lost", "doubled", "whole"))
    every_second = Schedule(periodic=Periodic(interval=duration(SECOND_US)))
    await fleet.create("clock", schedule=every_second)
    for n, action_id in enumerate([*lost, *doubled, *whole]):
        await fleet.create(action_id, delay_us=20 * SECOND_US + n * SECOND_US)
    await fleet.until(lambda: sum(worker.tally.migrated for worker in workers) >= 30)
    for action_id in lost:
        _lose(fleet, action_id)
    for action_id in doubled:
        _double(fleet, action_id, shard_id=3 - _keys(fleet, action_id)[0][1])
    for n, queue in enumerate((Queue.INCOMING, Queue.PROCESSING)):
        _orphan(fleet, queue, n, f"orphan-{n}")
    guids = {action_id: fleet.store.actions[action_id].guid for action_id in whole}

    done = await _repaired(fleet)

    assert (done.actions, done.changed) == (20, 0)
    await fleet.assert_sound()
    assert {action_id: fleet.store.actions[action_id].guid for action_id in whole} == guids
    await fleet.until(lambda: sum(started_id != "clock" for started_id, *_ in fleet.started) >= 30)
    await asyncio.sleep(5)
    for action_id in (*lost, *doubled, *whole):
        assert len(fleet.starts_of(action_id)) == 1
        assert (await fleet.status(action_id)).state == action_pb2.SUCCEEDED
    # The clock never stood still for it.
    ticks = fleet.starts_of("clock")
    assert all(later - earlier < 2 * SECOND_US for earlier, later in pairwise(ticks))
    assert not [key for key in fleet.store.rows if key[3].startswith("orphan")]


@on_virtual_time
async def test_an_attempt_that_ran_without_its_row_is_superseded_and_begun_again() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    going_on = asyncio.Event()

    async def wait(_context: Context) -> None:
        await going_on.wait()

    fleet.handler("wait", wait)
    await fleet.create("a", handler="wait")
    await fleet.until(lambda: len(fleet.started) == 1)
    _lose(fleet, "a")

    assert (await _repaired(fleet)).actions == 1

    await fleet.until(lambda: len(fleet.started) == 2)
    going_on.set()
    await fleet.until(lambda: worker.tally.succeeded == 1)
    await fleet.assert_sound()
    status = await fleet.status("a")
    assert (status.state, status.counters.succeeded_attempts) == (action_pb2.SUCCEEDED, 1)


@on_virtual_time
async def test_of_a_repair_and_a_user_at_once_each_action_is_whole() -> None:
    fleet = Fleet()
    fleet.add_worker()
    names = [f"a{n}" for n in range(20)]
    for name in names:
        await fleet.create(name, delay_us=HOUR_US)
        _lose(fleet, name)

    async def delete_some() -> None:
        for name in names[::2]:
            await fleet.delete(name)
            await asyncio.sleep(0.003)

    deleting = asyncio.ensure_future(delete_some())
    done = await _repaired(fleet, slice_size=1)
    await deleting

    assert done.actions >= 10
    await fleet.assert_sound()
    for n, name in enumerate(names):
        state = (await fleet.status(name)).state
        assert state == (action_pb2.SCHEDULED if n % 2 else action_pb2.DELETED)
