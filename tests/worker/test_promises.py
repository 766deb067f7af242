"""What a fleet of workers promises, whatever happens to its members."""

import asyncio
import inspect

from clepsydra.core.times import HOUR_US, MILLISECOND_US, MINUTE_US, SECOND_US, duration, us_of
from clepsydra.store.port import Lock
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Periodic, Retention, RetryPolicy, Schedule
from clepsydra.worker.running import Context
from tests.worker.fleet import Fleet, on_virtual_time

LEASE_AND_GRACE_US = 10 * SECOND_US


@on_virtual_time
async def test_an_action_is_executed_at_its_time_and_not_before() -> None:
    fleet = Fleet()
    fleet.add_worker()
    due = {}
    for n in range(200):
        delay_us = n * 37 * MILLISECOND_US
        due[f"a{n}"] = (await fleet.create(f"a{n}", delay_us=delay_us)).scheduled_at_us
    await fleet.until(lambda: len(fleet.started) == 200)
    for action_id, due_us in due.items():
        [started_us] = fleet.starts_of(action_id)
        assert 0 <= started_us - due_us <= 20 * MILLISECOND_US
    await fleet.assert_sound()


@on_virtual_time
async def test_a_success_is_recorded_kept_for_its_retention_and_then_purged_with_its_row() -> None:
    fleet = Fleet()
    fleet.add_worker()
    await fleet.create("a", retention=Retention(after_success=duration(MINUTE_US)))
    await fleet.until(lambda: fleet.members[0].tally.succeeded == 1)
    status = await fleet.status("a")
    assert status.state == action_pb2.SUCCEEDED
    assert status.last_attempt.outcome == action_pb2.Attempt.SUCCESS
    assert status.last_attempt.worker == "worker-0"
    await fleet.until(lambda: "a" not in fleet.store.actions, 2 * MINUTE_US)
    assert not fleet.store.rows


@on_virtual_time
async def test_a_failure_is_tried_again_with_growing_delays_and_then_given_up() -> None:
    fleet = Fleet()

    async def fail(context: Context) -> None:
        raise ValueError("not today")

    fleet.handler("fail", fail)
    fleet.add_worker()
    retry = RetryPolicy(first_delay=duration(SECOND_US), multiplier=3, jitter=0, max_attempts=3)
    await fleet.create("a", handler="fail", retry=retry)
    await fleet.until(lambda: fleet.members[0].tally.failed == 3)
    first_us, second_us, third_us = fleet.starts_of("a")
    assert second_us - first_us >= SECOND_US
    assert third_us - second_us >= 3 * SECOND_US
    status = await fleet.status("a")
    assert status.state == action_pb2.FAILED
    assert status.counters.failed_attempts == 3
    assert "not today" in status.last_attempt.error


@on_virtual_time
async def test_an_interrupted_attempt_is_taken_up_after_its_lease_and_not_before() -> None:
    fleet = Fleet()

    async def hang(context: Context) -> None:
        if context.attempt_number == 1:
            await asyncio.sleep(3600)

    fleet.handler("hang", hang)
    victim = fleet.add_worker()
    action = await fleet.create("a", handler="hang", attempt_timeout=duration(HOUR_US))
    await fleet.until(lambda: len(fleet.started) == 1)
    victim.kill()
    heir = fleet.add_worker()
    await fleet.until(lambda: heir.tally.succeeded == 1)
    first_us, second_us = fleet.starts_of("a")
    assert second_us - action.scheduled_at_us >= LEASE_AND_GRACE_US
    assert second_us - first_us <= LEASE_AND_GRACE_US + SECOND_US
    status = await fleet.status("a")
    assert status.counters.interrupted_attempts == 1
    assert status.counters.succeeded_attempts == 1
    assert status.counters.failed_attempts == 0
    await fleet.assert_sound()


@on_virtual_time
async def test_a_long_attempt_outlives_many_leases_and_its_workers_death_is_noticed_within_one() -> None:
    fleet = Fleet()

    async def long(context: Context) -> None:
        await asyncio.sleep(300)

    fleet.handler("long", long)
    victim = fleet.add_worker()
    idle = fleet.add_worker()
    await fleet.create("a", handler="long", attempt_timeout=duration(HOUR_US))
    await fleet.create("b", handler="long", attempt_timeout=duration(HOUR_US), delay_us=MINUTE_US)
    await fleet.until(lambda: victim.tally.succeeded + idle.tally.succeeded == 1)
    assert len(fleet.starts_of("a")) == 1
    assert len(fleet.starts_of("b")) == 1
    died_us = fleet.clock.now_us()
    for member in (victim, idle):
        member.kill()
    fleet.add_worker()
    await fleet.until(lambda: len(fleet.starts_of("b")) == 2)
    assert fleet.starts_of("b")[1] - died_us <= LEASE_AND_GRACE_US + SECOND_US


@on_virtual_time
async def test_a_worker_that_cannot_reach_the_store_cancels_its_attempts_before_another_takes_them() -> None:
    fleet = Fleet()
    ended: list[int] = []

    async def long(context: Context) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(fleet.clock.now_us())

    fleet.handler("long", long)
    victim = fleet.add_worker()
    await fleet.create("a", handler="long", attempt_timeout=duration(HOUR_US))
    await fleet.until(lambda: len(fleet.started) == 1)
    victim.kill()
    fleet.add_worker()
    await fleet.until(lambda: len(fleet.starts_of("a")) == 2)
    assert ended
    assert ended[0] < fleet.starts_of("a")[1]


@on_virtual_time
async def test_an_attempt_that_outlasts_its_timeout_is_cancelled_and_counted_as_failed() -> None:
    fleet = Fleet()

    async def hang(context: Context) -> None:
        await asyncio.sleep(3600)

    fleet.handler("hang", hang)
    worker = fleet.add_worker()
    await fleet.create("a", handler="hang", attempt_timeout=duration(2 * SECOND_US), retry=RetryPolicy(max_attempts=1))
    await fleet.until(lambda: worker.tally.failed == 1)
    status = await fleet.status("a")
    assert status.last_attempt.outcome == action_pb2.Attempt.TIMEOUT
    took_us = us_of(status.last_attempt.end_time) - us_of(status.last_attempt.start_time)
    assert 2 * SECOND_US <= took_us <= 2 * SECOND_US + 10 * MILLISECOND_US


@on_virtual_time
async def test_a_deleted_action_whose_attempt_runs_has_its_outcome_refused_and_never_runs_again() -> None:
    fleet = Fleet()

    async def slow(context: Context) -> None:
        await asyncio.sleep(5)
        raise ValueError("would be retried")

    fleet.handler("slow", slow)
    worker = fleet.add_worker()
    await fleet.create("a", handler="slow")
    await fleet.until(lambda: len(fleet.started) == 1)
    await fleet.delete("a")
    await fleet.until(lambda: worker.tally.superseded == 1)
    await fleet.until(lambda: "a" not in fleet.store.actions, 2 * HOUR_US)
    assert len(fleet.started) == 1
    assert not fleet.store.rows


@on_virtual_time
async def test_ten_thousand_updates_leave_one_live_row_and_no_other_after_a_minute() -> None:
    fleet = Fleet()
    fleet.add_worker()
    for _ in range(10_000):
        await fleet.create("a", delay_us=HOUR_US)
    await asyncio.sleep(60)
    audit = await fleet.store.audit(1)
    assert (audit.actions, audit.live_rows, audit.stale_rows) == (1, 1, 0)


@on_virtual_time
async def test_old_rows_far_in_the_future_are_collected_when_idle() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    for _ in range(50):
        migrated = worker.tally.migrated
        await fleet.create("a", delay_us=24 * HOUR_US)
        await fleet.until(lambda seen=migrated: worker.tally.migrated > seen)  # type: ignore[misc]
    assert len(fleet.store.rows) > 1
    await fleet.until(lambda: len(fleet.store.rows) == 1, MINUTE_US)
    await fleet.assert_sound()


@on_virtual_time
async def test_a_drained_worker_finishes_what_runs_releases_its_locks_and_interrupts_nothing() -> None:
    fleet = Fleet()

    async def slow(context: Context) -> None:
        await asyncio.sleep(10)

    fleet.handler("slow", slow)
    worker = fleet.add_worker()
    for n in range(20):
        await fleet.create(f"a{n}", handler="slow")
    await fleet.until(lambda: len(fleet.started) == 20)
    await worker.stop()
    assert worker.tally.succeeded == 20
    assert not any(lock.locked for lock in fleet.store.shard_locks.values())
    for n in range(20):
        assert (await fleet.status(f"a{n}")).counters.interrupted_attempts == 0


@on_virtual_time
async def test_what_outlasts_the_drain_limit_is_given_back_at_once() -> None:
    fleet = Fleet()

    async def slow(context: Context) -> None:
        await asyncio.sleep(600 if context.attempt_number == 1 else 0)

    fleet.handler("slow", slow)
    first = fleet.add_worker(drain_ms=1000)
    await fleet.create("a", handler="slow", attempt_timeout=duration(HOUR_US))
    await fleet.until(lambda: len(fleet.started) == 1)
    stopped_us = fleet.clock.now_us()
    await first.stop()
    second = fleet.add_worker()
    await fleet.until(lambda: second.tally.succeeded == 1)
    assert fleet.starts_of("a")[1] - stopped_us <= 2 * SECOND_US
    assert (await fleet.status("a")).counters.interrupted_attempts == 1


@on_virtual_time
async def test_what_a_worker_leaves_behind_is_counted_as_interrupted() -> None:
    fleet = Fleet()

    async def stubborn(context: Context) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)

    fleet.handler("stubborn", stubborn)
    await fleet.create("a", handler="stubborn")
    worker = fleet.add_worker(drain_ms=1000)
    await fleet.until(lambda: len(fleet.started) == 1)
    await worker.stop()
    assert (worker.tally.begun, worker.tally.interrupted) == (1, 1)


@on_virtual_time
async def test_two_workers_that_both_believe_in_their_locks_never_begin_one_row_twice() -> None:
    fleet = Fleet(shards=1)

    class EveryoneGetsTheLock:
        """The lock table is broken on purpose: every acquire and heartbeat succeeds."""

        def __getattr__(self, name: str) -> object:
            return getattr(fleet.store, name)

        async def acquire(self, guid: str, worker: str, now_us: int, stale_before_us: int) -> object:
            from clepsydra.store.port import Acquired

            return Acquired(Lock(0, guid), now_us)

        async def heartbeat(self, locks: list[Lock], now_us: int, stale_before_us: int) -> object:
            from clepsydra.store.port import Heartbeat

            return Heartbeat(frozenset(), 0, now_us)

    workers = [fleet.add_worker(EveryoneGetsTheLock()) for _ in range(4)]  # type: ignore[arg-type]
    for n in range(300):
        await fleet.create(f"a{n}", delay_us=(n % 10) * 100 * MILLISECOND_US)
    await fleet.until(lambda: sum(worker.tally.succeeded for worker in workers) == 300)
    await asyncio.sleep(120)
    assert sorted(action_id for action_id, _, _ in fleet.started) == sorted(f"a{n}" for n in range(300))
    assert sum(worker.tally.superseded for worker in workers) == 0
    await fleet.assert_sound()


@on_virtual_time
async def test_a_full_pool_hands_its_shards_to_other_workers() -> None:
    fleet = Fleet(shards=4)

    async def slow(context: Context) -> None:
        await asyncio.sleep(20)

    fleet.handler("slow", slow)
    small = fleet.add_worker(attempts=5)
    large = fleet.add_worker(attempts=500)
    for n in range(100):
        await fleet.create(f"a{n}", handler="slow")
    await fleet.until(lambda: small.tally.succeeded + large.tally.succeeded == 100, MINUTE_US)
    assert large.tally.succeeded >= 90
    await fleet.assert_sound()


@on_virtual_time
async def test_few_loops_serve_many_shards() -> None:
    fleet = Fleet(shards=16)
    worker = fleet.add_worker(loops=3)
    for n in range(200):
        await fleet.create(f"a{n}", delay_us=(n % 20) * SECOND_US)
    await fleet.until(lambda: worker.tally.succeeded == 200, MINUTE_US)


@on_virtual_time
async def test_an_action_that_cannot_be_decoded_is_set_aside_and_stops_nobody() -> None:
    fleet = Fleet(shards=1)
    worker = fleet.add_worker()
    bad = await fleet.create("bad", delay_us=SECOND_US)
    fleet.store.actions["bad"] = bad._replace(spec=b"\xff\xff not a message")
    await fleet.create("good", delay_us=SECOND_US)
    await fleet.until(lambda: worker.tally.succeeded == 1 and worker.tally.undecodable == 1)
    [later_us] = [row.scheduled_at_us for key, row in fleet.store.rows.items() if key[3] == "bad"]
    assert later_us >= bad.scheduled_at_us + 5 * MINUTE_US
    await fleet.assert_sound()


@on_virtual_time
async def test_an_occurrence_that_could_not_start_in_time_expires_and_a_periodic_action_goes_on() -> None:
    fleet = Fleet()
    start_us = fleet.clock.now_us()
    every_minute = Schedule(periodic=Periodic(interval=duration(MINUTE_US)))
    await fleet.create("once", start_deadline=duration(10 * SECOND_US))
    await fleet.create("often", start_deadline=duration(10 * SECOND_US), schedule=every_minute)
    await asyncio.sleep(30)
    worker = fleet.add_worker()
    await fleet.until(lambda: worker.tally.succeeded == 2)
    assert (await fleet.status("once")).state == action_pb2.EXPIRED
    often = await fleet.status("often")
    assert often.counters.expired_occurrences == 1
    assert [at_us - start_us for at_us in fleet.starts_of("often")] == [MINUTE_US, 2 * MINUTE_US]


@on_virtual_time
async def test_a_periodic_action_with_a_short_interval_misses_nothing() -> None:
    fleet = Fleet()
    worker = fleet.add_worker()
    often = Schedule(periodic=Periodic(interval=duration(100 * MILLISECOND_US), max_runs=100))
    await fleet.create("a", schedule=often)
    await fleet.until(lambda: worker.tally.succeeded == 100)
    status = await fleet.status("a")
    assert status.state == action_pb2.SUCCEEDED
    assert status.counters.missed_occurrences == 0
    assert status.counters.runs == 100


@on_virtual_time
async def test_a_stalled_worker_that_wakes_up_cannot_finish_what_was_taken_over() -> None:
    fleet = Fleet(shards=1)
    stall: asyncio.Event = asyncio.Event()

    class Stalling:
        """The way to the store stands still for a while: a long pause of the process, as others see it."""

        def __getattr__(self, name: str) -> object:
            value = getattr(fleet.store, name)
            if not inspect.iscoroutinefunction(value):
                return value

            async def call(*args: object, **kwargs: object) -> object:
                if stalled:
                    await stall.wait()
                return await value(*args, **kwargs)

            return call

    async def slow(context: Context) -> None:
        await asyncio.sleep(1)

    fleet.handler("slow", slow)
    stalled = False
    first = fleet.add_worker(Stalling())  # type: ignore[arg-type]
    await fleet.create("a", handler="slow")
    await fleet.until(lambda: len(fleet.started) == 1)
    stalled = True
    second = fleet.add_worker()
    await fleet.until(lambda: second.tally.succeeded == 1)
    stall.set()
    await fleet.until(lambda: first.tally.superseded == 1)
    status = await fleet.status("a")
    assert status.counters.succeeded_attempts == 1
    assert status.counters.interrupted_attempts == 1
    assert status.last_attempt.worker == "worker-1"
