"""Notifications wake other processes. They are coalesced, and with all of them lost everything still runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
import pytest
import structlog

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.port import Action
from clepsydra.store.postgres import PostgresStore
from clepsydra.store.postgres.wakeup import channel_of
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status
from clepsydra.v1.scheduler_pb2 import CreateActionRequest
from clepsydra.worker.handlers.registry import Registry
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from clepsydra.worker.worker import Worker
from tests.conformance.worlds import World
from tests.postgres.installations import Installation
from tests.postgres.wire import Wire, open_wire

SHORT_S = 0.05
# Not reached, unless a wake-up was lost.
LONG_S = 20


@pytest.fixture
async def other(installation: Installation) -> AsyncIterator[PostgresStore]:
    """A handle like that of another process."""
    opened = await PostgresStore.open(installation.url, SystemClock())
    yield opened
    await opened.close()


async def listeners(installation: Installation, operator: asyncpg.Connection) -> list[int]:
    """The server's processes that listen for this installation's stores."""
    rows = await operator.fetch(
        "SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND query LIKE 'LISTEN%'", installation.schema
    )
    return [pid for (pid,) in rows]


async def test_many_puts_send_few_notifications(
    world: World, installation: Installation, operator: asyncpg.Connection
) -> None:
    payloads: list[str] = []
    last = asyncio.Event()

    def receive(_connection: object, _pid: int, _channel: str, payload: str) -> None:
        payloads.append(payload)
        if payload.endswith("3"):
            last.set()

    await operator.add_listener(channel_of(installation.schema), receive)
    await asyncio.gather(*(world.store.put([world.create(f"a{n}", shard_id=n % 3)]) for n in range(60)))
    await world.carry_out(world.create("last", shard_id=3))
    await last.wait()
    shards = {shard for payload in payloads for shard in payload.partition(":")[2].split(",")}
    assert shards == {"0", "1", "2", "3"}
    assert len(payloads) < 30


async def test_a_notification_does_not_wake_its_sender(world: World, other: PostgresStore) -> None:
    await world.carry_out(world.create("a", shard_id=1))
    assert await world.store.wait(1, LONG_S)
    # When another handle has received the notification, the sender has received it too.
    assert await other.wait(1, LONG_S)
    assert not await world.store.wait(1, SHORT_S)


@pytest.mark.parametrize("payload", ["", "hello", "1:x", ":"])
async def test_a_notification_sent_by_hand_wakes_every_shard(
    store: PostgresStore, installation: Installation, operator: asyncpg.Connection, payload: str
) -> None:
    waits = [asyncio.create_task(store.wait(shard_id, LONG_S)) for shard_id in range(store.shards)]
    await operator.execute("SELECT pg_notify($1, $2)", channel_of(installation.schema), payload)
    assert all(await asyncio.gather(*waits))


async def test_every_shard_is_woken_after_a_break(
    world: World, other: PostgresStore, installation: Installation, operator: asyncpg.Connection
) -> None:
    for shard_id in range(other.shards):
        await other.wait(shard_id, SHORT_S)
    waits = [asyncio.create_task(other.wait(shard_id, LONG_S)) for shard_id in range(other.shards)]
    for pid in await listeners(installation, operator):
        await operator.execute("SELECT pg_terminate_backend($1)", pid)
    assert all(await asyncio.gather(*waits))
    # Notifications arrive again from then on.
    again = asyncio.create_task(other.wait(2, LONG_S))
    await world.carry_out(world.create("a", shard_id=2))
    assert await again


async def test_with_every_notification_lost_everything_still_runs(world: World, installation: Installation) -> None:
    async with open_wire(Wire(installation.server, drops_notifications=True)) as wire:
        worker_store = await PostgresStore.open(installation.through(wire.url), SystemClock())
        async with working(worker_store):
            scheduler = Scheduler(world.store, SystemClock(), Ids.from_system(), SchedulerSettings())
            for n in range(20):
                await scheduler.create(log_line(f"a{n}"))
            while not all(succeeded(action) for action in await world.store.list_actions(None, 20)):
                assert not await worker_store.wait(0, 0)
        await worker_store.close()
    await world.assert_sound(actions=20)


@contextlib.asynccontextmanager
async def working(store: PostgresStore) -> AsyncIterator[None]:
    """A worker runs on this store."""
    log = structlog.get_logger()
    settings = WorkerSettings()
    worker = Worker(store, Targets(settings, Registry(), log), SystemClock(), Ids.from_system(), settings, "w", log)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


def log_line(action_id: str) -> CreateActionRequest:
    request = CreateActionRequest()
    request.action.meta.id = action_id
    request.action.spec.log.message = "hello"
    return request


def succeeded(action: Action) -> bool:
    return Status.FromString(action.status).state == action_pb2.SUCCEEDED
