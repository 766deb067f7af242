"""Nothing waits for ever: not for a lock, nor for a connection, nor for a server that has stopped answering."""

import asyncio

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import DONE, World
from tests.postgres.installations import Installation
from tests.postgres.transactions import begun, waits_for_lock


async def test_who_waits_too_long_for_a_lock_or_for_a_connection_is_told_so(
    world: World, installation: Installation
) -> None:
    actions = await world.carry_out(world.create("a"), world.create("b"))
    single = await PostgresStore.open(f"{installation.url}&pool_size=1", SystemClock())
    changes = [world.change(action) for action in actions]
    async with begun(installation) as stranger:
        await stranger.connection.execute(f"SELECT FROM {installation.schema}.scheduled_actions FOR UPDATE")
        puts = [asyncio.create_task(single.put([change])) for change in changes]
        await waits_for_lock(installation, puts[0])
        # The two have the only connection in turn, each until its lock timeout.
        with pytest.raises(Unavailable, match=r"all 1 connections .* are in use; raise pool_size"):
            await single.get(["a"])
        for put in puts:
            with pytest.raises(Unavailable, match="was busy with the same rows for too long"):
                await put
    # Certainly not done, so that it can be done now.
    assert await single.put(changes) == [DONE] * 2
    await single.close()
    await world.assert_sound(actions=2, stale_rows=2)


async def test_a_failure_after_a_part_was_done_does_not_say_that_nothing_was(
    world: World, installation: Installation, operator: asyncpg.Connection
) -> None:
    """Of a put of two, one is done, and the other waits and is sent again, when the user may no longer write."""
    role = installation.schema
    await operator.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {role} TO {role}")
    await operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {role} TO {role}")
    store = await PostgresStore.open(installation.as_user(role, "word"), SystemClock())
    async with begun(installation) as stranger:
        await stranger.put(world.create("b"))
        puts = asyncio.create_task(store.put([world.create("a"), world.create("b")]))
        await waits_for_lock(installation, puts)
        await stranger.connection.execute(f"REVOKE ALL ON {role}.scheduled_actions FROM {role}")
    with pytest.raises(OutcomeUnknown, match="does not permit it"):
        await puts
    assert sorted((await world.content()).actions) == ["a", "b"]
    await world.assert_sound(actions=2)
    await store.close()
    await operator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_store_that_is_closed_says_so(installation: Installation) -> None:
    store = await PostgresStore.open(installation.url, SystemClock())
    waiting = asyncio.create_task(store.wait(0, 60))
    await asyncio.sleep(0)
    await store.close()
    assert await waiting
    with pytest.raises(RuntimeError, match="the store is closed"):
        await store.now()
