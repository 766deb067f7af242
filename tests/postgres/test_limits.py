"""Every wait has a limit: for a lock, for a connection, and for a server that does not answer."""

import asyncio

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.store.errors import OutcomeUnknown, Unavailable, Unusable
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import DONE, World, begin
from tests.postgres.installations import Installation
from tests.postgres.transactions import open_transaction, wait_until_blocked


async def test_a_call_that_waits_too_long_for_a_lock_or_for_a_connection_fails_with_the_reason(
    world: World, installation: Installation
) -> None:
    actions = await world.carry_out(world.create("a"), world.create("b"))
    single = await PostgresStore.open(f"{installation.url}&pool_size=1", SystemClock())
    changes = [world.change(action) for action in actions]
    async with open_transaction(installation) as stranger:
        await stranger.connection.execute(f"SELECT FROM {installation.schema}.scheduled_actions FOR UPDATE")
        puts = [asyncio.create_task(single.put([change])) for change in changes]
        await wait_until_blocked(installation, puts[0])
        # The two puts use the only connection in turn, each until its lock timeout.
        with pytest.raises(Unavailable, match=r"all 1 connections .* are in use; raise pool_size"):
            await single.get(["a"])
        for put in puts:
            with pytest.raises(Unavailable, match="was busy with the same rows for too long"):
                await put
    # The puts were certainly not done, so they can be done now.
    assert await single.put(changes) == [DONE] * 2
    await single.close()
    await world.assert_sound(actions=2, stale_rows=2)


async def test_a_failure_after_a_part_was_done_is_of_unknown_outcome(
    world: World, installation: Installation, operator: asyncpg.Connection
) -> None:
    """One of two puts is done. The other waits and is sent again, but by then the user may no longer write."""
    role = installation.schema
    await operator.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {role} TO {role}")
    await operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {role} TO {role}")
    store = await PostgresStore.open(installation.as_user(role, "word"), SystemClock())
    async with open_transaction(installation) as stranger:
        await stranger.put(world.create("b"))
        puts = asyncio.create_task(store.put([world.create("a"), world.create("b")]))
        await wait_until_blocked(installation, puts)
        await stranger.connection.execute(f"REVOKE ALL ON {role}.scheduled_actions FROM {role}")
    with pytest.raises(OutcomeUnknown, match="does not permit it"):
        await puts
    assert sorted((await world.content()).actions) == ["a", "b"]
    await world.assert_sound(actions=2)
    await store.close()
    await operator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_failure_after_some_of_a_batch_began_is_of_unknown_outcome(
    world: World, installation: Installation, operator: asyncpg.Connection
) -> None:
    """The user may move rows, but not write actions: the begin moves one row, and the judgement of the other fails."""
    role = installation.schema
    await operator.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'word'; GRANT USAGE ON SCHEMA {role} TO {role}")
    await operator.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {role} TO {role}")
    await operator.execute(f"REVOKE UPDATE ON {role}.scheduled_actions FROM {role}")
    store = await PostgresStore.open(installation.as_user(role, "word"), SystemClock())
    _, row = await world.waiting("a")
    _, gone = await world.waiting("b")
    await world.advance(begin(gone))
    with pytest.raises(Unusable, match="does not permit it"):
        await store.advance([begin(gone)], world.mark())
    with pytest.raises(OutcomeUnknown, match="does not permit it"):
        await store.advance([begin(row), begin(gone)], world.mark())
    assert (await world.row_of("a")).at_us == begin(row).to_us
    await store.close()
    await operator.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_a_closed_store_refuses_calls(installation: Installation) -> None:
    store = await PostgresStore.open(installation.url, SystemClock())
    waiting = asyncio.create_task(store.wait(0, 60))
    await asyncio.sleep(0)
    await store.close()
    assert await waiting
    with pytest.raises(RuntimeError, match="the store is closed"):
        await store.now()
