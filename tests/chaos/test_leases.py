"""What becomes of an attempt whose worker is killed: it is taken up after its lease, by another, and counted."""

import time
from collections.abc import Callable
from pathlib import Path

from clepsydra.core.times import MILLISECOND_US, SECOND_US
from clepsydra.worker.settings import WorkerSettings
from tests.chaos.action import Actor, held
from tests.chaos.caller import Caller
from tests.chaos.conftest import StartWorld
from tests.chaos.side_log import Event
from tests.chaos.sizes import IS_LONG, LEASES_OUTLIVED
from tests.chaos.until import until
from tests.chaos.world import SETTINGS, World

# Longer than elsewhere: a machine that stalls for half a lease interrupts the attempt by itself.
_SETTINGS = {} if IS_LONG else {**SETTINGS, "worker.lease_ms": 5_000}
_WORKER = WorkerSettings(**{key.removeprefix("worker."): value for key, value in _SETTINGS.items()})
_LEASE_AND_GRACE_US = _WORKER.lease_us + _WORKER.grace_us
# A promise in time is held to with a margin for a machine that has other things to do.
_MARGIN_US = 60 * SECOND_US
_TIMEOUT_S = (LEASES_OUTLIVED + 2) * _WORKER.lease_ms / 1000 + 60

CallAt = Callable[[str], Caller]


def now_us() -> int:
    return time.time_ns() // 1000


async def _kill_its_worker_and_see(world: World, actor: Actor, release: Path) -> None:
    """Kill the worker of the only attempt: the next one begins at the end of the lease, and not before."""
    [first] = actor.lines(Event.STARTED)
    killed = actor.worker_of(first)
    [other] = [worker for worker in world.workers if worker is not killed]
    # The other one waits until the row has been looked at, however long that takes.
    other.pause()
    killed.kill()
    killed_us = now_us()
    lease_ends_us = (await actor.stats()).earliest_us
    other.go_on()
    assert lease_ends_us is not None
    assert lease_ends_us <= killed_us + _LEASE_AND_GRACE_US
    # A lease counts from the begin, which lies between the row's time and the start of the execution.
    assert lease_ends_us >= first.due_us + _LEASE_AND_GRACE_US

    second = await actor.started(2)
    assert second.begun_us >= lease_ends_us
    assert second.at_us < lease_ends_us + _MARGIN_US
    assert (second.number, second.idempotency_key) == (2, first.idempotency_key)
    assert second.pid != first.pid
    counters = (await actor.get("a")).response.status.counters
    assert (counters.interrupted_attempts, counters.failed_attempts, counters.runs) == (1, 0, 0)

    release.touch()  # noqa: ASYNC240 - a local file

    async def has_succeeded() -> bool:
        entry = (await actor.entries())["a"]
        return (entry.state, entry.succeeded, entry.interrupted, entry.failed) == ("SUCCEEDED", 1, 1, 0)

    await until(has_succeeded, "the second attempt's success is accepted")
    assert [line.number for line in actor.lines(Event.STARTED)] == [1, 2]


async def test_an_interrupted_attempt_is_taken_up_after_its_lease_and_not_before(
    start_world: StartWorld, call_at: CallAt, tmp_path: Path
) -> None:
    world = await start_world(settings=_SETTINGS)
    actor = Actor(world, call_at(world.server))
    release = tmp_path / "release"
    await actor.create("a", held(release), now_us())
    await actor.started(1)
    await _kill_its_worker_and_see(world, actor, release)
    await world.audit()
    assert world.troubles == []


async def test_a_long_attempt_outlives_many_leases_and_is_taken_up_when_its_worker_dies(
    start_world: StartWorld, call_at: CallAt, tmp_path: Path
) -> None:
    world = await start_world(settings=_SETTINGS)
    actor = Actor(world, call_at(world.server))
    release = tmp_path / "release"
    await actor.create("a", held(release), now_us())
    first = await actor.started(1)

    def many_leases_have_passed() -> bool:
        return now_us() > first.begun_us + LEASES_OUTLIVED * _WORKER.lease_ms * MILLISECOND_US

    await until(many_leases_have_passed, "many leases pass", _TIMEOUT_S)
    counters = (await actor.get("a")).response.status.counters
    assert (counters.interrupted_attempts, counters.failed_attempts) == (0, 0)
    await _kill_its_worker_and_see(world, actor, release)
    await world.audit()
    assert world.troubles == []
