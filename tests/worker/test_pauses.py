"""A pause of a worker's machine costs nothing that nobody has taken over meanwhile."""

import asyncio

from clepsydra.core.times import HOUR_US, SECOND_US, duration
from clepsydra.worker.running import Context
from clepsydra.worker.settings import WorkerSettings
from tests.simulation.loop import VirtualLoop
from tests.worker.fleet import Fleet, on_virtual_time

LEASE_AND_GRACE_US = WorkerSettings().lease_us + WorkerSettings().grace_us


@on_virtual_time
async def test_a_frozen_worker_keeps_what_nobody_has_taken_over_meanwhile() -> None:
    fleet = Fleet(shards=1)

    async def long(context: Context) -> None:
        await asyncio.sleep(60)

    fleet.handler("long", long)
    worker = fleet.add_worker()
    for n in range(20):
        await fleet.create(f"a{n}", handler="long", attempt_timeout=duration(HOUR_US))
    await fleet.until(lambda: len(fleet.started) == 20)
    # The machine stands still for longer than a lease: no callback runs, and every timer goes off late.
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.freeze(2 * LEASE_AND_GRACE_US / SECOND_US)
    await fleet.until(lambda: worker.tally.succeeded == 20)
    assert len(fleet.started) == 20
    assert (worker.tally.interrupted, worker.tally.found_interrupted) == (0, 0)
    await fleet.assert_sound()
