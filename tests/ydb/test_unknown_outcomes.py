"""When nobody knows whether a try was done, and the world moves on before the next one."""

import asyncio
from collections.abc import Callable

import pytest

from clepsydra.store.errors import OutcomeUnknown, Unavailable, Unusable
from clepsydra.store.port import Action, AdvanceOutcome, Lock, Put, PutOutcome, PutResult, Row
from clepsydra.store.ydb.hashing import id_hash
from tests.conformance.worlds import DONE, World, begin, finish
from tests.ydb.scenes import IMPATIENT, opened, running, scene
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead


def before_second_try(endpoint: Endpoint, text: str, change: Callable[[], None]) -> None:
    """Let something happen between the first try of a call and the second."""
    faults = endpoint.faults

    def first() -> None:
        faults.interruptions[text] = change

    faults.interruptions[text] = first


def commit_put(endpoint: Endpoint, put: Put) -> None:
    """What another scheduler does, at once."""
    database = endpoint.engine.database
    path = f"{database.root}/clepsydra"
    transaction = database.begin(is_serializable=True)
    action = put.action
    table = database.tables[f"{path}/scheduled_actions"]
    row = {
        "meta_action_id_hash": id_hash(action.action_id),
        "meta_action_id": action.action_id,
        "meta": action.meta,
        "meta_action_guid": action.guid,
        "spec": action.spec,
        "status": action.status,
        "status_scheduled_at": action.scheduled_at_us,
    }
    transaction.replace(table, table.key_of(row), row)
    queue = database.tables[f"{path}/incoming_queue"]
    came_in = {
        "shard_id": put.shard_id,
        "created_at": put.created_at_us,
        "action_id": action.action_id,
        "action_guid": action.guid,
        "scheduled_at": action.scheduled_at_us,
    }
    transaction.replace(queue, queue.key_of(came_in), came_in)
    transaction.commit()


BEFORE_OR_AFTER = pytest.mark.parametrize("fault", [instead, afterwards])


@BEFORE_OR_AFTER
async def test_a_put_that_may_have_been_done_is_not_called_a_conflict(fault: Callable[..., Fault]) -> None:
    async with running() as endpoint, scene(endpoint) as made:
        mine = made.world.change(made.actions["waits"], shard_id=1)
        theirs = made.world.change(mine.action if fault is afterwards else made.actions["waits"], shard_id=0)
        endpoint.faults.plan(fault(Status.UNDETERMINED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        with pytest.raises(OutcomeUnknown, match="'waits'"):
            await made.store.put([mine])
        # The caller repeats it as it was, and hears how the action is.
        assert await made.store.put([mine]) == [PutResult(PutOutcome.CONFLICT, theirs.action)]
        audit = await made.store.audit(10)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)


async def test_a_put_that_was_certainly_not_done_is_called_a_conflict() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        mine = made.world.change(made.actions["waits"], shard_id=1)
        theirs = made.world.change(made.actions["waits"], shard_id=0)
        endpoint.faults.plan(instead(Status.OVERLOADED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        assert await made.store.put([mine]) == [PutResult(PutOutcome.CONFLICT, theirs.action)]


@BEFORE_OR_AFTER
async def test_of_a_batch_what_is_done_stays_done_though_one_item_is_unknown(fault: Callable[..., Fault]) -> None:
    async with running() as endpoint, scene(endpoint) as made:
        mine = [made.world.create("new", shard_id=1), made.world.change(made.actions["waits"], shard_id=1)]
        theirs = made.world.change(mine[1].action, shard_id=0)
        endpoint.faults.plan(fault(Status.UNDETERMINED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        with pytest.raises(OutcomeUnknown):
            await made.store.put(mine)
        assert await made.store.get(["new", "waits"]) == [mine[0].action, theirs.action]
        first, second = await made.store.put(mine)
        assert (first, second.outcome) == (DONE, PutOutcome.CONFLICT)


@pytest.mark.parametrize("status", [Status.UNDETERMINED, Status.UNAVAILABLE])
async def test_a_row_that_is_gone_after_a_doubt_is_unknown(status: Status) -> None:
    """The first try began the attempt; another worker moved the row on before the second try."""
    async with running() as endpoint, scene(endpoint) as made, opened(endpoint) as other:
        row, mark = made.rows["waits"], made.world.mark()
        begun = row._replace(at_us=begin(row).to_us or 0)
        endpoint.faults.plan(afterwards(status, "advance_in_processing"), Fault(Kind.SLOW, "advance_in_processing"))
        held = asyncio.create_task(made.store.advance([begin(row)], mark))
        # The second try waits in the server, with its work done; the first one's is there for all to see.
        await until_struck(endpoint, 2)
        assert await other.advance([begin(begun, lease_s=90)], made.world.mark()) == [AdvanceOutcome.DONE]
        endpoint.faults.patience.set()
        assert await held == [AdvanceOutcome.DONE]
        assert await made.store.advance([begin(row)], mark) == [AdvanceOutcome.GONE]


async def test_a_row_that_another_takes_between_two_tries_is_unknown() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        row, mark = made.rows["waits"], made.world.mark()
        endpoint.faults.plan(instead(Status.UNDETERMINED, "advance_in_processing"))
        before_second_try(endpoint, "advance_in_processing", lambda: drop(endpoint, row))
        outcomes = await made.store.advance([begin(row), begin(made.rows["ends"])], mark)
        assert outcomes == [AdvanceOutcome.UNKNOWN, AdvanceOutcome.DONE]


async def test_a_row_that_another_takes_after_a_refusal_is_gone() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        row, mark = made.rows["waits"], made.world.mark()
        endpoint.faults.plan(instead(Status.ABORTED, "advance_in_processing"))
        before_second_try(endpoint, "advance_in_processing", lambda: drop(endpoint, row))
        assert await made.store.advance([begin(row)], mark) == [AdvanceOutcome.GONE]


def drop(endpoint: Endpoint, row: Row) -> None:
    database = endpoint.engine.database
    transaction = database.begin(is_serializable=True)
    table = database.tables[f"{database.root}/clepsydra/processing_queue"]
    transaction.replace(table, (row.shard_id, row.at_us, row.action_id, row.guid), None)
    transaction.commit()


async def until_struck(endpoint: Endpoint, times: int) -> None:
    async with asyncio.timeout(30):
        while endpoint.faults.struck < times:  # noqa: ASYNC110 - the endpoint has no event for it
            await asyncio.sleep(0.001)


async def test_an_aborted_batch_is_tried_again_in_halves() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        puts = [made.world.create(f"a{n}", shard_id=0) for n in range(8)]
        endpoint.engine.requests.clear()
        endpoint.faults.plan(instead(Status.ABORTED, "put", times=2))
        assert await made.store.put(puts) == [DONE] * 8
        # 8, then 4, then 2 and 2, then the other 4.
        assert [request.call for request in endpoint.engine.requests if request.call] == ["put"] * 5


async def test_half_a_call_is_unknown_when_the_other_half_fails() -> None:
    async with running() as endpoint, scene(endpoint, IMPATIENT) as made:
        puts = [made.world.create(f"a{n}", shard_id=0) for n in range(2)]
        endpoint.faults.plan(instead(Status.ABORTED, "put"), instead(Status.OVERLOADED, "put", times=1000, after=1))
        with pytest.raises(OutcomeUnknown):
            await made.store.put(puts)
        endpoint.faults.planned.clear()
        assert await made.store.get(["a0", "a1"]) == [puts[0].action, None]
        assert await made.store.put(puts) == [DONE, DONE]


async def test_an_answer_that_was_cut_short_is_asked_for_again() -> None:
    """The work is committed, and some outcomes are missing: a replay finds them."""
    async with running() as endpoint, scene(endpoint) as made:
        puts = [made.world.create(f"a{n}", shard_id=0) for n in range(9)]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "put", rows=4, times=2))
        assert await made.store.put(puts) == [DONE] * 9
        advances = [begin(made.rows[name]) for name in ("waits", "ends")]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "advance_in_processing", rows=1))
        assert await made.store.advance(advances, made.world.mark()) == [AdvanceOutcome.DONE] * 2
        assert (await made.store.audit(10)).violations == []


@pytest.mark.parametrize(
    "status", [Status.SCHEME_ERROR, Status.UNAUTHORIZED, Status.GENERIC_ERROR, Status.BAD_REQUEST, Status.UNSUPPORTED]
)
async def test_what_no_repetition_helps_is_unusable_at_once(status: Status) -> None:
    async with running() as endpoint, scene(endpoint) as made:
        endpoint.faults.plan(instead(status), instead(status))
        with pytest.raises(Unusable, match=status.name):
            await made.store.put([made.world.create("new")])
        with pytest.raises(Unusable, match=status.name):
            await made.store.get(["waits"])
        assert endpoint.faults.struck == 2


async def test_even_the_hopeless_is_unknown_after_a_doubt() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        endpoint.faults.plan(afterwards(Status.UNDETERMINED, "put"), instead(Status.SCHEME_ERROR, "put"))
        with pytest.raises(OutcomeUnknown):
            await made.store.put([made.world.create("new")])


async def test_calls_on_one_connection_survive_its_loss() -> None:
    """When a connection breaks the SDK cancels what others have under way on it; nobody's task was cancelled."""
    async with running(can_cut=True) as endpoint, scene(endpoint) as made:
        puts = [made.world.create(f"a{n}", shard_id=n % 2) for n in range(40)]
        endpoint.faults.plan(*(Fault(Kind.CUT_AFTER, "put", after=10 * n) for n in (0, 1, 1)))
        answers = await asyncio.gather(*(made.store.put([put]) for put in puts))
        assert answers == [[DONE]] * 40
        assert endpoint.faults.struck == 3
        audit = await made.store.audit(10)
        assert (audit.live_rows, audit.without_row, audit.with_several_rows) == (audit.actions, 0, 0)
        assert await made.store.get([put.action.action_id for put in puts]) == [put.action for put in puts]


async def test_a_caller_who_gives_up_is_really_cancelled() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        endpoint.faults.plan(Fault(Kind.SLOW, "put"))
        call = asyncio.create_task(made.store.put([made.world.create("new")]))
        await until_struck(endpoint, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The session that it held is replaced.
        assert await made.store.put([made.world.create("newer")]) == [DONE]


async def test_a_store_that_is_closed_lets_what_is_under_way_end() -> None:
    async with running() as endpoint, scene(endpoint) as made, opened(endpoint) as store:
        endpoint.faults.plan(Fault(Kind.SLOW, "put"))
        put = made.world.create("new")
        call = asyncio.create_task(store.put([put]))
        await until_struck(endpoint, 1)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        endpoint.faults.patience.set()
        assert await call == [DONE]
        await closing


async def test_locks_that_the_server_does_not_tell_of_are_not_taken_for_lost() -> None:
    async with running() as endpoint, scene(endpoint, IMPATIENT) as made:
        assert (await made.store.acquire("second", "worker", made.world.now_us, 0)) is not None
        locks = [made.lock, Lock(1, "second")]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "heartbeat", rows=1))
        assert (await made.store.heartbeat(locks, made.world.at(5), 0)).lost == frozenset()
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "heartbeat", rows=1, times=1000))
        with pytest.raises(OutcomeUnknown):
            await made.store.heartbeat(locks, made.world.at(6), 0)


async def test_callers_wait_for_a_session_no_longer_than_they_are_told() -> None:
    limits = IMPATIENT._replace(sessions=1, timeout_s=0.2)
    async with running() as endpoint, scene(endpoint, limits) as made:
        endpoint.faults.plan(Fault(Kind.SLOW, "put", times=1000))
        slow = asyncio.create_task(made.store.put([made.world.create("new")]))
        await until_struck(endpoint, 1)
        with pytest.raises(Unavailable):
            await made.store.now()
        with pytest.raises(OutcomeUnknown):
            await slow


async def test_a_finish_is_accepted_once_whatever_becomes_of_the_answers() -> None:
    """Two workers finish the same attempt, each through doubts: one outcome is accepted."""
    async with running() as endpoint, scene(endpoint) as made, opened(endpoint) as other:
        row, action = made.rows["in flight"], made.actions["in flight"]
        ends = [finish(row, action, made.world.at(900 + n), status=b"by %d" % n) for n in range(2)]
        endpoint.faults.plan(afterwards(Status.UNAVAILABLE, "advance_in_processing", times=2))
        marks = [made.world.mark(), made.world.mark()]
        first, second = await asyncio.gather(
            made.store.advance([ends[0]], marks[0]), other.advance([ends[1]], marks[1])
        )
        assert sorted([first[0].value, second[0].value]) in (["done", "unknown"], ["done", "gone"])
        winner = 0 if first == [AdvanceOutcome.DONE] else 1
        current: Action | None = (await made.store.get(["in flight"]))[0]
        assert current is not None
        assert current.status == b"by %d" % winner


async def test_the_clock_may_run_away_within_a_text() -> None:
    """Every look at the clock is five seconds later than the last: a put is done as a whole or not at all."""
    async with running() as endpoint, scene(endpoint) as made:
        start_us = made.world.now_us
        looks = iter(range(0, 10**9, 5_000_000))
        endpoint.engine.clock = lambda: start_us + next(looks)
        results = [(await made.store.put([put]))[0] for put in _puts(made.world, 12)]
        outcomes = [result.outcome for result in results]
        assert set(outcomes) == {PutOutcome.DONE, PutOutcome.TOO_LATE}
        endpoint.engine.clock = lambda: start_us
        there = await made.store.get([f"a{n}" for n in range(12)])
        assert [action is not None for action in there] == [outcome is PutOutcome.DONE for outcome in outcomes]
        audit = await made.store.audit(10)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)


def _puts(world: World, count: int) -> list[Put]:
    return [world.create(f"a{n}", shard_id=n % 2) for n in range(count)]
