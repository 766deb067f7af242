"""Which calls wait for each other: only a put and an advance, or two of either, that write the same action.

Each test holds one call's transaction open and makes another call beside it. The server's list of sessions shows
whether that one waits.
"""

import asyncio

from clepsydra.store.lock_age import fresh_until_us
from clepsydra.store.port import Advance, AdvanceOutcome, PutOutcome, PutResult
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import DONE, World, begin, finish
from tests.postgres.installations import Installation
from tests.postgres.transactions import open_transaction, wait_until_blocked


async def test_a_worker_does_not_wait_for_a_put(world: World, installation: Installation) -> None:
    """It does not see what is not committed, and does not wait for it to read, migrate, begin, finish or lock."""
    action, flying = await world.in_flight("flying")
    _, waiting = await world.waiting("waiting")
    [came_in] = await world.carry_out(world.create("came in"))
    async with open_transaction(installation) as put:
        await put.put(world.create("new"), world.change(came_in))
        page = await world.page(0)
        assert [entry.row.action_id for entry in page.incoming] == ["came in"]
        assert await world.store.migrate([entry.row for entry in page.incoming], world.mark()) == 1
        outcomes = await world.store.advance([begin(waiting), finish(flying, action, world.at(900))], world.mark())
        assert outcomes == [AdvanceOutcome.DONE] * 2
        acquired = await world.store.acquire("lock", "worker", world.now_us, 0)
        assert acquired is not None
        await world.store.heartbeat([acquired.lock], world.now_us, 0)
    await world.assert_sound(actions=4, stale_rows=1)


async def test_a_put_does_not_wait_for_a_worker(world: World, installation: Installation) -> None:
    action, flying = await world.in_flight("flying")
    begins, row = await world.waiting("begins")
    [came_in] = await world.carry_out(world.create("came in"))
    async with open_transaction(installation) as worker:
        await worker.migrate([await world.row_of("came in")], world.mark())
        await worker.advance([begin(row), finish(flying, action, world.at(900))], world.mark())
        # Even an action whose row is being migrated, or whose attempt is beginning, can be changed.
        assert await world.store.put([world.create("new"), world.change(came_in), world.change(begins)]) == [DONE] * 3
    await world.assert_sound(actions=4, stale_rows=2)


async def test_an_attempt_begins_during_a_change_of_its_action_and_its_outcome_is_not_accepted(
    world: World, installation: Installation
) -> None:
    action, row = await world.waiting("a")
    async with open_transaction(installation) as put:
        await put.put(world.change(action))
        mark = world.mark()
        assert await world.store.advance([begin(row)], mark) == [AdvanceOutcome.DONE]
    begun_row = next(entry.row for entry in await world.entries(0))
    assert await world.store.advance([finish(begun_row, action, world.at(900))], world.mark()) == [AdvanceOutcome.STALE]
    await world.assert_sound(actions=1)


async def test_an_outcome_waits_for_a_change_of_its_action_and_is_not_accepted_after_it(
    world: World, installation: Installation
) -> None:
    action, row = await world.in_flight("a")
    async with open_transaction(installation) as put:
        await put.put(world.change(action))
        outcome = asyncio.create_task(world.store.advance([finish(row, action, world.at(900))], world.mark()))
        await wait_until_blocked(installation, outcome)
    assert await outcome == [AdvanceOutcome.STALE]
    await world.assert_sound(actions=1)


async def test_a_change_waits_for_an_outcome_and_conflicts_with_it(world: World, installation: Installation) -> None:
    action, row = await world.in_flight("a")
    async with open_transaction(installation) as worker:
        await worker.advance([finish(row, action, world.at(900))], world.mark())
        change = asyncio.create_task(world.store.put([world.change(action)]))
        await wait_until_blocked(installation, change)
    [result] = await change
    assert result == PutResult(PutOutcome.CONFLICT, action._replace(status=b"finished", scheduled_at_us=world.at(900)))
    await world.assert_sound(actions=1)


async def test_an_outcome_goes_on_after_a_change_of_labels_that_it_waited_for(
    world: World, installation: Installation
) -> None:
    action, row = await world.in_flight("a")
    labels = world.relabel(action)
    async with open_transaction(installation) as put:
        await put.put(labels)
        outcome = asyncio.create_task(world.store.advance([finish(row, action, world.at(900))], world.mark()))
        await wait_until_blocked(installation, outcome)
    assert await outcome == [AdvanceOutcome.DONE]
    finished = labels.action._replace(status=b"finished", scheduled_at_us=world.at(900))
    assert await world.store.get(["a"]) == [finished]


async def test_a_change_of_labels_that_waited_for_an_outcome_is_written_over_it(
    world: World, installation: Installation
) -> None:
    action, row = await world.in_flight("a")
    labels = world.relabel(action)
    async with open_transaction(installation) as worker:
        await worker.advance([finish(row, action, world.at(900))], world.mark())
        put = asyncio.create_task(world.store.put([labels]))
        await wait_until_blocked(installation, put)
    assert await put == [DONE]
    finished = labels.action._replace(status=b"finished", scheduled_at_us=world.at(900))
    assert await world.store.get(["a"]) == [finished]


async def test_a_second_creation_waits_and_conflicts_with_the_first(world: World, installation: Installation) -> None:
    first = world.create("a")
    async with open_transaction(installation) as scheduler:
        await scheduler.put(first)
        second = asyncio.create_task(world.store.put([world.create("a"), world.create("b")]))
        await wait_until_blocked(installation, second)
    assert await second == [PutResult(PutOutcome.CONFLICT, first.action), DONE]
    await world.assert_sound(actions=2)


async def test_a_creation_that_waited_for_one_that_is_rolled_back_is_done(
    world: World, installation: Installation
) -> None:
    async with open_transaction(installation) as scheduler:
        await scheduler.put(world.create("a"))
        second = asyncio.create_task(world.store.put([world.create("a")]))
        await wait_until_blocked(installation, second)
        await scheduler.connection.execute("ROLLBACK")
        assert await second == [DONE]
        await scheduler.connection.execute("BEGIN")
    await world.assert_sound(actions=1)


async def test_a_creation_that_waited_for_a_removal_conflicts_with_nothing_and_is_done(
    world: World, installation: Installation
) -> None:
    action, row = await world.waiting("a")
    async with open_transaction(installation) as worker:
        await worker.advance([Advance(row, None, action.scheduled_at_us)], world.mark())
        creation = asyncio.create_task(world.store.put([world.create("a")]))
        await wait_until_blocked(installation, creation)
    assert await creation == [DONE]
    await world.assert_sound(actions=1)


async def test_a_second_worker_waits_for_the_row_and_finds_it_gone(world: World, installation: Installation) -> None:
    _, row = await world.waiting("a")
    async with open_transaction(installation) as worker:
        await worker.advance([begin(row)], world.mark())
        second = asyncio.create_task(world.store.advance([begin(row, 40)], world.mark()))
        await wait_until_blocked(installation, second)
    assert await second == [AdvanceOutcome.GONE]
    await world.assert_sound(actions=1)


async def test_an_outcome_that_waited_for_its_row_and_finds_it_gone_does_not_write_its_action(
    world: World, installation: Installation
) -> None:
    """It has locked the action by then. The others of its batch are written."""
    action, row = await world.in_flight("a")
    other, other_row = await world.in_flight("b")
    async with open_transaction(installation) as worker:
        await worker.advance([Advance(row, world.at(70), action.scheduled_at_us)], world.mark())
        outcomes = [finish(row, action, world.at(900)), finish(other_row, other, world.at(900))]
        finishing = asyncio.create_task(world.store.advance(outcomes, world.mark()))
        await wait_until_blocked(installation, finishing)
    assert await finishing == [AdvanceOutcome.GONE, AdvanceOutcome.DONE]
    assert await world.store.get(["a"]) == [action]
    assert (await world.row_of("a")).at_us == world.at(70)
    await world.assert_sound(actions=2)


async def test_a_migration_waits_for_a_begin_of_the_same_row_and_leaves_it_alone(
    world: World, installation: Installation
) -> None:
    await world.carry_out(world.create("a"), world.create("b"))
    row, other = await world.row_of("a"), await world.row_of("b")
    async with open_transaction(installation) as worker:
        await worker.advance([begin(row)], world.mark())
        migration = asyncio.create_task(world.store.migrate([row, other], world.mark()))
        await wait_until_blocked(installation, migration)
    assert await migration == 1
    await world.assert_sound(actions=2)


async def test_a_begin_waits_for_a_migration_of_the_same_row_and_finds_it_gone(
    world: World, installation: Installation
) -> None:
    await world.carry_out(world.create("a"))
    row = await world.row_of("a")
    async with open_transaction(installation) as worker:
        await worker.migrate([row], world.mark())
        beginning = asyncio.create_task(world.store.advance([begin(row)], world.mark()))
        await wait_until_blocked(installation, beginning)
    assert await beginning == [AdvanceOutcome.GONE]
    await world.assert_sound(actions=1)


async def test_a_repeated_advance_waits_for_its_own_first_try_and_recognises_it(
    world: World, installation: Installation
) -> None:
    """The connection of the first try broke, and the server was still executing it."""
    action, flying = await world.in_flight("flying")
    _, waiting = await world.waiting("waiting")
    advances, mark = [begin(waiting), finish(flying, action, world.at(900))], world.mark()
    async with open_transaction(installation) as first_try:
        await first_try.advance(sorted(advances, key=lambda advance: advance.row.action_id), mark)
        repeated = asyncio.create_task(world.store.advance(advances, mark))
        await wait_until_blocked(installation, repeated)
    assert await repeated == [AdvanceOutcome.DONE] * 2
    await world.assert_sound(actions=2)


async def test_a_repeated_put_waits_for_its_own_first_try_and_recognises_it(
    world: World, installation: Installation
) -> None:
    [seen] = await world.carry_out(world.create("seen"))
    puts = [world.create("new"), world.change(seen)]
    async with open_transaction(installation) as first_try:
        await first_try.put(*puts)
        repeated = asyncio.create_task(world.store.put(puts))
        await wait_until_blocked(installation, repeated)
    assert await repeated == [DONE] * 2
    await world.assert_sound(actions=2, stale_rows=1)


async def test_a_worker_passes_over_a_lock_that_another_is_taking(
    store: PostgresStore, world: World, installation: Installation
) -> None:
    async with open_transaction(installation) as worker:
        [[taken, *_]] = await worker.write(
            "acquire", "first", "worker", world.now_us, 0, fresh_until_us(world.now_us, 0)
        )
        acquired = await store.acquire("second", "worker", world.now_us, 0)
        assert acquired is not None
        assert acquired.lock.shard_id != taken


async def test_a_call_is_retried_after_a_deadlock_with_another_transaction(
    world: World, installation: Installation
) -> None:
    a, b = await world.carry_out(world.create("a"), world.create("b"))
    async with open_transaction(installation) as stranger:
        # It locks in the opposite order. Its long timeout makes the server abort the store's statement, not this one.
        await stranger.connection.execute("SET LOCAL deadlock_timeout = '20s'")
        lock = f"SELECT FROM {installation.schema}.scheduled_actions WHERE meta_action_id = $1 FOR UPDATE"
        await stranger.connection.execute(lock, "b")
        puts = asyncio.create_task(world.store.put([world.change(b), world.change(a)]))
        await wait_until_blocked(installation, puts)
        # This succeeds only because the store's statement was aborted.
        await stranger.connection.execute(lock, "a")
    assert await puts == [DONE] * 2
    await world.assert_sound(actions=2, stale_rows=2)
