"""Two schedulers and four workers on one server: every action is executed, and accepted once, whatever happens."""

import asyncio
from pathlib import Path

from clepsydra.store.postgres import PostgresStore
from tests.postgres.fleet import ACTIONS, Client, fleet, wait_for_ends
from tests.postgres.installations import Installation
from tests.postgres.server import running

SHARDS = 16


async def test_every_action_is_executed_and_accepted_once(tmp_path: Path) -> None:
    place = Installation()
    await PostgresStore.install(place.url, SHARDS)
    with fleet(place.url, tmp_path, schedulers=2, workers=4) as started:
        client = Client(await asyncio.to_thread(started.wait_until_ready))
        await client.create(ACTIONS)
        assert await wait_for_ends(place.url, ACTIONS) == {("SUCCEEDED", 1, 1): ACTIONS}
        audit = await asyncio.to_thread(started.audit)
        assert audit.code == 0, audit.out
        await asyncio.to_thread(started.stop)
        assert client.refusals == {}
        # Nothing disturbs the fleet, so nothing is executed twice, and no process logs a failure.
        assert started.executions() == dict.fromkeys(client.acknowledged, 1)
        for failure in ("deadlock", "serializ", "given up", "could not be", "interrupted="):
            assert failure not in started.logs()
    await place.drop()


async def test_every_action_is_executed_and_accepted_once_though_the_server_crashes_twice(tmp_path: Path) -> None:
    with running() as server:
        await PostgresStore.install(server.url, SHARDS)
        with fleet(server.url, tmp_path, schedulers=2, workers=4) as started:
            client = Client(await asyncio.to_thread(started.wait_until_ready))
            creating = asyncio.create_task(client.create(ACTIONS))
            for part in (1, 2):
                await client.wait_for_acknowledged(part * ACTIONS // 3)
                await asyncio.to_thread(server.restart, "immediate")
            await creating
            assert await wait_for_ends(server.url, ACTIONS) == {("SUCCEEDED", 1, 1): ACTIONS}
            audit = await asyncio.to_thread(started.audit)
            assert audit.code == 0, audit.out
            await asyncio.to_thread(started.stop)
            assert set(started.executions()) == client.acknowledged
            assert len(client.acknowledged) == ACTIONS
            for failure in ("deadlock", "serializ"):
                assert failure not in started.logs() + str(client.refusals)
