"""An attempt begins only when what it needs is free; rows that wait for it are unbegun, and hold up nobody else."""

import asyncio
import random
import threading
from collections.abc import Sequence

import pytest

from clepsydra.core.action.creation import new_action
from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import MILLISECOND_US, SECOND_US, duration
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Advance, AdvanceOutcome, Due, Mark, Put, Queue, Row
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import PythonHandler, RetryPolicy, ScheduledAction, Spec
from clepsydra.worker import Registry
from clepsydra.worker.capacity import Capacity, Needs, Resource
from clepsydra.worker.loop.waiting_rows import WaitingRows
from clepsydra.worker.running import Context
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker
from tests.worker.fleet import SILENT, Fleet, on_virtual_time

LIMIT_S = 20.0
ONE_ATTEMPT = RetryPolicy(max_attempts=1)


class Slow:
    """A handler of which only a few run at once; each takes a second."""

    def __init__(self, fleet: Fleet) -> None:
        self.running = self.most = 0
        fleet.handler("slow", self.handle)

    async def handle(self, context: Context) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(1)
        self.running -= 1


@on_virtual_time
async def test_a_timeout_counts_from_the_call_and_others_start_on_time() -> None:
    fleet = Fleet(shards=3)
    slow = Slow(fleet)
    member = fleet.add_worker(handler_attempts=4)
    timeout = duration(1500 * MILLISECOND_US)
    for n in range(100):
        await fleet.create(f"slow-{n:03}", handler="slow", attempt_timeout=timeout, retry=ONE_ATTEMPT)
    due = {}
    for n in range(50):
        due[f"a{n}"] = (await fleet.create(f"a{n}", delay_us=n * 400 * MILLISECOND_US)).scheduled_at_us
    await fleet.until(lambda: member.tally.succeeded == 150)
    assert slow.most == 4
    assert member.tally.begun == 150
    for action_id, due_us in due.items():
        [started_us] = fleet.starts_of(action_id)
        assert 0 <= started_us - due_us <= 20 * MILLISECOND_US, action_id
    await fleet.assert_sound()


@pytest.mark.parametrize("shards", [1, 3])
def test_reading_goes_on_behind_many_pages_of_rows_that_wait(shards: int) -> None:
    @on_virtual_time
    async def test() -> None:
        fleet = Fleet(shards=shards)
        Slow(fleet)
        # All at one and the same time, and far more than are kept in memory.
        now_us = fleet.clock.now_us()
        for n in range(300 * shards):
            await fleet.create(f"slow-{n:03}", handler="slow", delay_us=now_us + SECOND_US - fleet.clock.now_us())
        member = fleet.add_worker(handler_attempts=2, page=5, loops=1)
        await fleet.until(lambda: len(fleet.started) >= 2)
        behind = await fleet.create("behind", delay_us=2 * SECOND_US)
        await fleet.until(lambda: bool(fleet.starts_of("behind")), 10 * SECOND_US)
        # One loop that goes from shard to shard is later than one that stays.
        assert fleet.starts_of("behind")[0] - behind.scheduled_at_us <= shards * SECOND_US // 2
        assert member.tally.begun < 50
        await fleet.assert_sound()

    test()


@on_virtual_time
async def test_rows_that_were_passed_by_are_executed_in_the_order_of_their_times() -> None:
    fleet = Fleet(shards=1)
    Slow(fleet)
    for n in range(100):
        await fleet.create(f"slow-{n:03}", handler="slow", delay_us=n)
    member = fleet.add_worker(handler_attempts=1, page=4)
    await fleet.until(lambda: member.tally.succeeded == 100)
    assert [action_id for action_id, _, _ in fleet.started] == [f"slow-{n:03}" for n in range(100)]
    # One after the other, without a pause that would be worth a word.
    assert fleet.started[-1][2] - fleet.started[0][2] <= 105 * SECOND_US


@on_virtual_time
async def test_an_action_that_is_deleted_while_it_waits_is_never_called() -> None:
    fleet = Fleet(shards=1)
    Slow(fleet)
    member = fleet.add_worker(handler_attempts=1)
    for n in range(5):
        await fleet.create(f"slow-{n}", handler="slow")
    await fleet.until(lambda: len(fleet.started) == 1)
    waiting = [f"slow-{n}" for n in range(5) if not fleet.starts_of(f"slow-{n}")]
    await fleet.delete(waiting[-1])
    await fleet.until(lambda: member.tally.succeeded == 4)
    assert fleet.starts_of(waiting[-1]) == []


@on_virtual_time
async def test_a_waiting_row_expires_at_its_start_deadline_and_is_not_called() -> None:
    fleet = Fleet(shards=1)
    Slow(fleet)
    member = fleet.add_worker(handler_attempts=1)
    await fleet.create("first", handler="slow")
    await fleet.until(lambda: len(fleet.started) == 1)
    await fleet.create("second", handler="slow", start_deadline=duration(SECOND_US // 2))
    await fleet.until(lambda: member.tally.expired == 1)
    assert fleet.starts_of("second") == []


class SlowToBegin(MemoryStore):
    """Answers begins late, by this much."""

    late_s = 0.0

    async def advance(self, advances: Sequence[Advance], mark: Mark) -> list[AdvanceOutcome]:
        outcomes = await super().advance(advances, mark)
        if advances[0].seen_scheduled_at_us is None:
            await asyncio.sleep(self.late_s)
        return outcomes


@pytest.mark.parametrize("late_s", [0.15, 3.0, 4.0])
@pytest.mark.parametrize("timeout_ms", [100, 1_000, 100_000])
def test_an_attempt_whose_begin_took_longer_than_its_timeout_is_executed(late_s: float, timeout_ms: int) -> None:
    @on_virtual_time
    async def test() -> None:
        fleet = Fleet(shards=1)
        fleet.store = store = SlowToBegin(1, fleet.clock)
        store.late_s = late_s
        leases: list[int] = []

        @fleet.registry.handler("look")
        async def look(context: Context) -> None:
            [row] = [key for key in store.rows if key[3] == context.action_id]
            leases.append(row[2] - fleet.clock.now_us())
            assert context.deadline_us == fleet.clock.now_us() + timeout_ms * MILLISECOND_US

        timeout = duration(timeout_ms * MILLISECOND_US)
        await fleet.create("a", handler="look", attempt_timeout=timeout, retry=ONE_ATTEMPT)
        member = fleet.add_worker()
        await fleet.until(lambda: member.tally.succeeded == 1, 20 * SECOND_US)
        assert (await fleet.status("a")).counters.interrupted_attempts == 0
        # It covers the attempt, or a whole lease, and leaves a part of the grace.
        terms = WorkerSettings()
        assert leases[0] >= min(timeout_ms * MILLISECOND_US, terms.lease_us) + terms.grace_us // 4

    test()


async def test_plain_functions_wait_unbegun_for_a_thread_and_coroutines_pass_them() -> None:
    clock, ids, registry = SystemClock(), Ids(random.Random(1)), Registry()
    store = MemoryStore(2, clock)
    gate, called = threading.Semaphore(0), list[str]()

    @registry.handler("plain")
    def plain(context: Context) -> None:
        called.append(context.action_id)
        assert gate.acquire(timeout=LIMIT_S)

    @registry.handler("coroutine")
    async def coroutine() -> None: ...

    settings = WorkerSettings(handler_threads=2)
    worker = Worker(store, Targets(settings, registry, SILENT), clock, ids, settings, "w", SILENT)

    async def create(action_id: str, handler: str) -> None:
        now_us = clock.now_us()
        spec = Spec(handler=PythonHandler(name=handler), retry=ONE_ATTEMPT)
        action = new_action(ScheduledAction(spec=spec), action_id, ids.guid(), now_us)
        await store.put([Put(None, action, ids.shard(2), now_us)])

    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(LIMIT_S):
        for n in range(20):
            await create(f"plain-{n}", "plain")
        while len(called) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        for n in range(20):
            await create(f"coroutine-{n}", "coroutine")
        while worker.tally.succeeded < 20:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        # What has begun is what was called, and the coroutines.
        assert worker.tally.begun == 22
        gate.release(20)
        while worker.tally.succeeded < 40:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    worker.stop()
    await running
    assert len(called) == 20
    assert worker.tally.failed == worker.tally.interrupted == 0
    statuses = [action_pb2.Status.FromString(action.status).state for action in store.actions.values()]
    assert set(statuses) == {action_pb2.SUCCEEDED}


def test_one_of_many_leaves_a_part_for_the_others() -> None:
    capacity = Capacity(1000)
    threads = capacity.resource(32)
    left = []
    for _ in range(5):
        needs = Needs(threads, capacity.resource(1000, threads))
        while needs.room():
            needs.take(1)
        left.append(threads.free)
    assert left == [8, 2, 0, 0, 0]


def test_one_call_of_a_batch_handler_needs_one_thread() -> None:
    capacity = Capacity(1000)
    threads = capacity.resource(4)
    needs = Needs(threads, batch=10)
    assert needs.room() == 40
    needs.take(25)
    assert threads.taken == 3
    # Six of them were gone before they began.
    needs.give_back(25, still_needed=19)
    assert threads.taken == 2
    needs.give_back(10)
    needs.give_back(9)
    assert threads.taken == 0


class Rows:
    """Rows that wait, which note what they are called with."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def freed(self, resource: Resource) -> None:
        self.heard.append(resource)

    def look_at(self, needs: Needs) -> None:
        self.heard.append(needs)


def test_who_waits_is_called_once_when_something_is_given_back() -> None:
    capacity, rows, woken = Capacity(10), Rows(), list[int]()
    capacity.when_freed = lambda: woken.append(1)
    resource = capacity.resource(4)
    needs = Needs(resource)
    needs.take(4)
    assert needs.lacking() is resource
    needs.give_back(1)
    assert woken == []
    resource.listeners.add(rows)
    needs.give_back(1)
    needs.give_back(1)
    assert rows.heard == [resource]
    assert woken == [1]


def test_what_is_lacking_is_what_must_be_given_back() -> None:
    capacity = Capacity(1000)
    connections = capacity.resource(32)
    one = Needs(connections, capacity.resource(5, connections))
    other = Needs(connections, capacity.resource(100, connections))
    one.take(5)
    assert one.lacking() is one.resources[1]
    other.take(other.room())
    # It has its part, though some are free.
    assert connections.free > 0
    assert other.lacking() is connections
    rows = Rows()
    other.listeners.add(rows)
    other.exchange(connections)
    assert rows.heard == [other]
    assert other.room() == connections.free


class Line:
    """Needs of one call at a time, and rows that wait for it."""

    def __init__(self, waiting: WaitingRows, needs: Needs, name: str) -> None:
        self.waiting, self.needs, self.name = waiting, needs, name

    def due(self, n: int) -> Due:
        return Due(Row(Queue.PROCESSING, 0, n, f"{self.name}-{n}", "guid", n), None)

    def add(self, *times: int) -> None:
        for n in times:
            self.waiting.add(self.needs, self.due(n))


def taken(waiting: WaitingRows, limit: int = 100) -> list[str]:
    return [due.row.action_id for due in waiting.take(limit)]


def test_lines_are_looked_at_when_what_they_lack_is_given_back() -> None:
    capacity, waiting = Capacity(1000), WaitingRows(page=100)
    shared = capacity.resource(4)
    lines = [Line(waiting, Needs(shared), name) for name in "abc"]
    shared.take(4)
    for n, line in enumerate(lines):
        line.add(30 - n, 10 - n, 20 - n)
    assert taken(waiting) == []
    assert not waiting.can_begin()
    shared.give_back(2)
    assert waiting.can_begin()
    # The earliest first, of any line.
    assert taken(waiting) == ["c-8", "c-18"]
    shared.take(2)
    assert taken(waiting) == []
    assert not waiting.can_begin()
    shared.give_back(4)
    assert len(taken(waiting, limit=3)) == 3
    assert waiting.can_begin()


def test_rows_that_did_not_begin_after_all_leave_their_resources_to_the_next() -> None:
    capacity, waiting = Capacity(1000), WaitingRows(page=100)
    line = Line(waiting, Needs(capacity.resource(1)), "a")
    line.needs.take(1)
    line.add(1, 2, 3)
    assert taken(waiting) == []
    line.needs.give_back(1)
    # Nothing is taken for these: they had expired, or were gone.
    assert [taken(waiting) for _ in range(4)] == [["a-1"], ["a-2"], ["a-3"], []]
    assert not waiting


def test_rows_beyond_the_bound_are_read_again_from_where_the_first_of_them_lies() -> None:
    capacity, waiting = Capacity(1000), WaitingRows(page=2)
    line = Line(waiting, Needs(capacity.resource(2)), "a")
    line.needs.take(2)
    line.add(1, 2, 3, 4, 5)
    assert taken(waiting) == []
    line.needs.give_back(2)
    assert taken(waiting) == ["a-1", "a-2"]
    assert taken(waiting) == []
    assert waiting.read_again() == (line.needs, (3, "a-3", ""))
    waiting.was_read(line.needs, (4, "a-4", "guid"))
    assert waiting.read_again() is None
    line.add(3, 4)
    assert waiting.unknown([line.due(4), line.due(5)]) == [line.due(5)]
    assert taken(waiting) == ["a-3", "a-4"]
    taken(waiting)
    assert waiting.read_again() == (line.needs, (4, "a-4", "guid"))
    waiting.was_read(line.needs, None)
    assert taken(waiting) == []
    assert not waiting


def test_rows_that_are_forgotten_are_read_again() -> None:
    capacity, waiting = Capacity(1000), WaitingRows(page=10)
    line = Line(waiting, Needs(capacity.resource(1)), "a")
    line.needs.take(1)
    line.add(1, 2)
    assert taken(waiting) == []
    waiting.forget_rows()
    line.needs.give_back(1)
    assert taken(waiting) == []
    assert waiting.read_again() == (line.needs, (1, "a-1", ""))
