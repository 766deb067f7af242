"""A running attempt whose action is changed is cancelled within two seconds, and its outcome is not accepted."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from clepsydra.core.action.events import Accepted, Cancelled, Deleted, Event, Paused
from clepsydra.core.limits import DELETED_RETENTION_DEFAULT_US
from clepsydra.core.times import MINUTE_US, SECOND_US, duration
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Advance, AdvanceOutcome, Mark
from clepsydra.v1.action_pb2 import Spec
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

WITHIN_US = 2 * SECOND_US
CHANGES: dict[str, Event] = {
    "delete": Deleted(DELETED_RETENTION_DEFAULT_US),
    "pause": Paused(),
    "update": Accepted(),
    "cancel": Cancelled(),
}


class Watched:
    """A handler that runs for minutes, and notes when it is cancelled."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.contexts: list[Context] = []
        self.cancelled_us: list[int] = []
        fleet.handler("long", self._run)

    async def _run(self, context: Context) -> None:
        self.contexts.append(context)
        try:
            await asyncio.sleep(300)
        except asyncio.CancelledError:
            assert context.cancelled
            self.cancelled_us.append(self._fleet.clock.now_us())
            raise


@pytest.mark.parametrize("age_ms", [1, 400, 600, 20_000, 100_000])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_action_ends_its_attempt(change: str, age_ms: int) -> None:
    """Whatever the age of the attempt; and the worker does not hold the shard that the change comes into."""

    @on_virtual_time
    async def story() -> None:
        fleet = Fleet(shards=8)
        watched = Watched(fleet)
        # Two workers with few loops: the change seldom comes into a shard that the attempt's worker holds just then.
        members = [fleet.add_worker(loops=1), fleet.add_worker(loops=1)]
        action = await fleet.create("a", handler="long", attempt_timeout=duration(10 * MINUTE_US))
        await fleet.until(lambda: bool(watched.contexts))
        await asyncio.sleep(age_ms / 1000)
        assert not watched.cancelled_us
        changed_us = fleet.clock.now_us()
        await fleet.change("a", Spec.FromString(action.spec), CHANGES[change])
        await fleet.until(lambda: bool(watched.cancelled_us))
        assert watched.cancelled_us[0] - changed_us <= WITHIN_US
        await fleet.until(lambda: sum(member.tally.superseded for member in members) == 1)
        assert len(watched.contexts) == (2 if change == "update" else 1)
        assert (await fleet.status("a")).counters.interrupted_attempts == 0
        await fleet.assert_sound()

    story()


@on_virtual_time
async def test_an_attempt_that_was_taken_over_is_cancelled() -> None:
    """Its row came due too early, and the next attempt has begun: the version of the action tells."""
    fleet = Fleet()
    watched = Watched(fleet)
    member = fleet.add_worker(lease_ms=600_000)
    await fleet.create("a", handler="long", attempt_timeout=duration(20 * MINUTE_US))
    await fleet.until(lambda: bool(watched.contexts))
    [row] = [key for key in fleet.store.rows if key[3] == "a"]
    kept = fleet.store.rows.pop(row)
    kept.scheduled_at_us = fleet.clock.now_us()
    fleet.store.rows[(*row[:2], kept.scheduled_at_us, *row[3:])] = kept
    await fleet.until(lambda: len(watched.contexts) == 2)
    await fleet.until(lambda: bool(watched.cancelled_us), WITHIN_US)
    await fleet.until(lambda: member.tally.superseded == 1)
    assert [context.attempt_number for context in watched.contexts] == [1, 2]
    assert not watched.contexts[1].cancelled


@on_virtual_time
async def test_nothing_is_read_while_nothing_runs_for_long() -> None:
    fleet = Fleet()
    reads = 0
    versions = fleet.store.versions

    async def counted(action_ids: list[str]) -> object:
        nonlocal reads
        reads += 1
        return await versions(action_ids)

    fleet.store.versions = counted  # type: ignore[assignment,method-assign]
    fleet.add_worker()
    for n in range(20):
        await fleet.create(f"a{n}", delay_us=n * SECOND_US)
    await fleet.until(lambda: len(fleet.started) == 20)
    assert reads == 0
    watched = Watched(fleet)
    for n in range(30):
        await fleet.create(f"b{n}", handler="long", attempt_timeout=duration(10 * MINUTE_US))
    await fleet.until(lambda: len(watched.contexts) == 30)
    await asyncio.sleep(10)
    # One read for all of them, twice a second.
    assert 15 <= reads <= 21


class SlowStore:
    """A store whose first advances take these times."""

    def __init__(self, store: MemoryStore, *seconds: float) -> None:
        self._store = store
        self._seconds = list(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        outcomes = await self._store.advance(advances, mark)
        if self._seconds:
            await asyncio.sleep(self._seconds.pop(0))
        return outcomes


@on_virtual_time
async def test_an_attempt_that_is_cancelled_before_it_could_start_ends_once() -> None:
    """Its begin was answered so late that its lease is extended first, and that takes long as well."""
    fleet = Fleet()
    watched = Watched(fleet)
    slow: Any = SlowStore(fleet.store, 9, 30)
    member = fleet.add_worker(slow, lock_life_ms=20_000, lease_ms=20_000, heartbeat_ms=100, grace_ms=1_000)
    action = await fleet.create("a", handler="long", attempt_timeout=duration(10 * MINUTE_US))
    await fleet.until(lambda: member.tally.begun == 1)
    await fleet.change("a", Spec.FromString(action.spec), Paused())
    await fleet.until(lambda: member.tally.superseded == 1)
    await asyncio.sleep(60)
    assert member.tally.superseded == member.tally.begun == 1
    assert not watched.contexts
    # Nothing keeps a place in the pool.
    await member.stop()
    await fleet.assert_sound()


@on_virtual_time
async def test_an_attempt_that_has_not_started_does_not_time_out() -> None:
    """Its timeout counts from its start, however long the store takes to extend its lease before."""
    fleet = Fleet(shards=1)
    watched = Watched(fleet)
    # The begin of the short one takes long, and so does the extension before its start.
    slow: Any = SlowStore(fleet.store, 0, 7, 4)
    member = fleet.add_worker(slow, lock_life_ms=20_000, lease_ms=20_000, heartbeat_ms=100, grace_ms=10_000)
    # This one ends by its timeout while the other waits: the pool looks then for what has to be cut short.
    await fleet.create("long", handler="long", attempt_timeout=duration(9 * SECOND_US))
    await fleet.until(lambda: bool(watched.contexts))
    await fleet.create("short", attempt_timeout=duration(SECOND_US))
    await fleet.until(lambda: member.tally.succeeded == 1)
    status = await fleet.status("short")
    counters = status.counters
    assert (counters.succeeded_attempts, counters.failed_attempts, counters.interrupted_attempts) == (1, 0, 0)
