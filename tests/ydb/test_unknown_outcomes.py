"""Tries of unknown outcome, and what other processes change before the next try."""

import asyncio
from collections.abc import Callable

import pytest

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import SECOND_US
from clepsydra.store.errors import OutcomeUnknown, Unavailable, Unusable
from clepsydra.store.port import Action, AdvanceOutcome, Lock, Put, PutOutcome, PutResult, Row
from clepsydra.store.ydb.parameters import id_hash
from tests.conformance.worlds import DONE, World, begin, finish
from tests.ydb.sample_installation import LONG_LIMITS, SHORT_RETRY, open_store, running_endpoint, sample_installation
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead


def before_second_try(endpoint: Endpoint, text: str, change: Callable[[], None]) -> None:
    """Make a change between the first try of a call and the second."""
    faults = endpoint.faults

    def first() -> None:
        faults.interruptions[text] = change

    faults.interruptions[text] = first


def commit_put(endpoint: Endpoint, put: Put) -> None:
    """Commit a put of another scheduler."""
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
    incoming = {
        "shard_id": put.shard_id,
        "created_at": put.created_at_us,
        "action_id": action.action_id,
        "action_guid": action.guid,
        "scheduled_at": action.scheduled_at_us,
    }
    transaction.replace(queue, queue.key_of(incoming), incoming)
    transaction.commit()


BEFORE_OR_AFTER = pytest.mark.parametrize("fault", [instead, afterwards])


@BEFORE_OR_AFTER
async def test_a_put_that_may_have_been_done_is_unknown_and_no_conflict(fault: Callable[..., Fault]) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        mine = sample.world.change(sample.actions["waits"], shard_id=1)
        theirs = sample.world.change(mine.action if fault is afterwards else sample.actions["waits"], shard_id=0)
        endpoint.faults.plan(fault(Status.UNDETERMINED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        with pytest.raises(OutcomeUnknown, match="'waits'"):
            await sample.store.put([mine])
        # The caller repeats the call, and gets the current action.
        assert await sample.store.put([mine]) == [PutResult(PutOutcome.CONFLICT, theirs.action)]
        await sample.check_invariant()


async def test_a_put_that_was_certainly_not_done_is_a_conflict() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        mine = sample.world.change(sample.actions["waits"], shard_id=1)
        theirs = sample.world.change(sample.actions["waits"], shard_id=0)
        endpoint.faults.plan(instead(Status.OVERLOADED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        assert await sample.store.put([mine]) == [PutResult(PutOutcome.CONFLICT, theirs.action)]


@BEFORE_OR_AFTER
async def test_puts_of_a_batch_stay_done_if_another_one_is_unknown(fault: Callable[..., Fault]) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        mine = [sample.world.create("new", shard_id=1), sample.world.change(sample.actions["waits"], shard_id=1)]
        theirs = sample.world.change(mine[1].action, shard_id=0)
        endpoint.faults.plan(fault(Status.UNDETERMINED, "put"))
        before_second_try(endpoint, "put", lambda: commit_put(endpoint, theirs))
        with pytest.raises(OutcomeUnknown):
            await sample.store.put(mine)
        assert await sample.store.get(["new", "waits"]) == [mine[0].action, theirs.action]
        first, second = await sample.store.put(mine)
        assert (first, second.outcome) == (DONE, PutOutcome.CONFLICT)


@pytest.mark.parametrize("status", [Status.UNDETERMINED, Status.UNAVAILABLE])
async def test_a_try_finds_its_mark_though_another_worker_has_moved_the_row_since(status: Status) -> None:
    """The first try began the attempt. Another worker moves the row while the second try waits for its response."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample, open_store(endpoint) as other:
        row, mark = sample.rows["waits"], sample.world.mark()
        begun = row._replace(at_us=begin(row).to_us or 0)
        endpoint.faults.plan(afterwards(status, "advance_in_processing"), Fault(Kind.SLOW, "advance_in_processing"))
        held = asyncio.create_task(sample.store.advance([begin(row)], mark))
        # The second try is done, and waits in the server. What the first one wrote is visible.
        await until_injected(endpoint, 2)
        assert await other.advance([begin(begun, lease_s=90)], sample.world.mark()) == [AdvanceOutcome.DONE]
        endpoint.faults.release_slow.set()
        assert await held == [AdvanceOutcome.DONE]
        assert await sample.store.advance([begin(row)], mark) == [AdvanceOutcome.GONE]


async def test_a_row_that_is_gone_after_a_try_of_unknown_outcome_is_unknown() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        row, mark = sample.rows["waits"], sample.world.mark()
        endpoint.faults.plan(instead(Status.UNDETERMINED, "advance_in_processing"))
        before_second_try(endpoint, "advance_in_processing", lambda: drop(endpoint, row))
        outcomes = await sample.store.advance([begin(row), begin(sample.rows["ends"])], mark)
        assert outcomes == [AdvanceOutcome.UNKNOWN, AdvanceOutcome.DONE]


async def test_a_row_that_is_gone_after_a_refused_try_is_gone() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        row, mark = sample.rows["waits"], sample.world.mark()
        endpoint.faults.plan(instead(Status.ABORTED, "advance_in_processing"))
        before_second_try(endpoint, "advance_in_processing", lambda: drop(endpoint, row))
        assert await sample.store.advance([begin(row)], mark) == [AdvanceOutcome.GONE]


def drop(endpoint: Endpoint, row: Row) -> None:
    database = endpoint.engine.database
    transaction = database.begin(is_serializable=True)
    table = database.tables[f"{database.root}/clepsydra/processing_queue"]
    transaction.replace(table, (row.shard_id, row.at_us, row.action_id, row.guid), None)
    transaction.commit()


async def until_injected(endpoint: Endpoint, times: int) -> None:
    async with asyncio.timeout(30):
        while endpoint.faults.injected < times:  # noqa: ASYNC110 - the endpoint has no event for it
            await asyncio.sleep(0.001)


async def test_an_aborted_batch_is_tried_again_in_halves() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        puts = [sample.world.create(f"a{n}", shard_id=0) for n in range(8)]
        endpoint.engine.requests.clear()
        endpoint.faults.plan(instead(Status.ABORTED, "put", times=2))
        assert await sample.store.put(puts) == [DONE] * 8
        # 8, then 4, then 2 and 2, then the other 4.
        assert [request.call for request in endpoint.engine.requests if request.call] == ["put"] * 5


async def test_a_call_is_unknown_if_one_half_was_done_and_the_other_half_fails() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        puts = [sample.world.create(f"a{n}", shard_id=0) for n in range(2)]
        endpoint.faults.plan(instead(Status.ABORTED, "put"), instead(Status.OVERLOADED, "put", times=1000, after=1))
        with pytest.raises(OutcomeUnknown):
            await sample.store.put(puts)
        endpoint.faults.planned.clear()
        assert await sample.store.get(["a0", "a1"]) == [puts[0].action, None]
        assert await sample.store.put(puts) == [DONE, DONE]


async def test_missing_results_of_a_truncated_response_are_requested_again() -> None:
    """The work is committed, and some results are missing: a repeated try finds its marks."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        puts = [sample.world.create(f"a{n}", shard_id=0) for n in range(9)]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "put", rows=4, times=2))
        assert await sample.store.put(puts) == [DONE] * 9
        advances = [begin(sample.rows[name]) for name in ("waits", "ends")]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "advance_in_processing", rows=1))
        assert await sample.store.advance(advances, sample.world.mark()) == [AdvanceOutcome.DONE] * 2
        assert (await sample.store.audit(10)).violations == []


@pytest.mark.parametrize(
    "status", [Status.SCHEME_ERROR, Status.UNAUTHORIZED, Status.GENERIC_ERROR, Status.BAD_REQUEST, Status.UNSUPPORTED]
)
async def test_an_error_that_no_repetition_helps_is_unusable_at_once(status: Status) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        endpoint.faults.plan(instead(status), instead(status))
        with pytest.raises(Unusable, match=status.name):
            await sample.store.put([sample.world.create("new")])
        with pytest.raises(Unusable, match=status.name):
            await sample.store.get(["waits"])
        assert endpoint.faults.injected == 2


async def test_such_an_error_after_a_try_of_unknown_outcome_is_unknown() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        endpoint.faults.plan(afterwards(Status.UNDETERMINED, "put"), instead(Status.SCHEME_ERROR, "put"))
        with pytest.raises(OutcomeUnknown):
            await sample.store.put([sample.world.create("new")])


async def test_calls_survive_the_loss_of_their_connection() -> None:
    """If a connection breaks, the SDK cancels the requests on it as if their tasks had been cancelled."""
    async with running_endpoint(can_cut=True) as endpoint, sample_installation(endpoint) as sample:
        puts = [sample.world.create(f"a{n}", shard_id=n % 2) for n in range(40)]
        endpoint.faults.plan(*(Fault(Kind.CUT_AFTER, "put", after=10 * n) for n in (0, 1, 1)))
        results = await asyncio.gather(*(sample.store.put([put]) for put in puts))
        assert results == [[DONE]] * 40
        assert endpoint.faults.injected == 3
        audit = await sample.store.audit(10)
        assert (audit.live_rows, audit.without_row, audit.with_several_rows) == (audit.actions, 0, 0)
        assert await sample.store.get([put.action.action_id for put in puts]) == [put.action for put in puts]


async def test_a_cancelled_call_is_cancelled() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        endpoint.faults.plan(Fault(Kind.SLOW, "put"))
        call = asyncio.create_task(sample.store.put([sample.world.create("new")]))
        await until_injected(endpoint, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # Its session is replaced.
        assert await sample.store.put([sample.world.create("newer")]) == [DONE]


async def test_close_waits_for_calls_in_flight() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample, open_store(endpoint) as store:
        endpoint.faults.plan(Fault(Kind.SLOW, "put"))
        put = sample.world.create("new")
        call = asyncio.create_task(store.put([put]))
        await until_injected(endpoint, 1)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        endpoint.faults.release_slow.set()
        assert await call == [DONE]
        await closing


async def test_locks_missing_from_a_truncated_response_are_not_lost() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        assert (await sample.store.acquire("second", "worker", sample.world.now_us, 0)) is not None
        locks = [sample.lock, Lock(1, "second")]
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "heartbeat", rows=1))
        assert (await sample.store.heartbeat(locks, sample.world.at(5), 0)).lost == frozenset()
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "heartbeat", rows=1, times=1000))
        with pytest.raises(OutcomeUnknown):
            await sample.store.heartbeat(locks, sample.world.at(6), 0)


async def test_the_wait_for_a_session_is_limited() -> None:
    limits = SHORT_RETRY._replace(sessions=1, timeout_s=0.2)
    async with running_endpoint() as endpoint, sample_installation(endpoint, limits) as sample:
        endpoint.faults.plan(Fault(Kind.SLOW, "stats"))
        slow = asyncio.create_task(sample.store.stats(sample.world.now_us))
        await until_injected(endpoint, 1)
        with pytest.raises(Unavailable, match="none of 1 sessions"):
            await sample.store.now()
        endpoint.faults.release_slow.set()
        assert (await slow).actions == 5


async def test_a_finish_is_accepted_once_even_if_responses_are_lost() -> None:
    """Two workers finish the same attempt, each with a try of unknown outcome: one is accepted."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample, open_store(endpoint) as other:
        row, action = sample.rows["in flight"], sample.actions["in flight"]
        ends = [finish(row, action, sample.world.at(900 + n), status=b"by %d" % n) for n in range(2)]
        endpoint.faults.plan(afterwards(Status.UNAVAILABLE, "advance_in_processing", times=2))
        marks = [sample.world.mark(), sample.world.mark()]
        first, second = await asyncio.gather(
            sample.store.advance([ends[0]], marks[0]), other.advance([ends[1]], marks[1])
        )
        assert sorted([first[0].value, second[0].value]) in (["done", "unknown"], ["done", "gone"])
        winner = 0 if first == [AdvanceOutcome.DONE] else 1
        current: Action | None = (await sample.store.get(["in flight"]))[0]
        assert current is not None
        assert current.status == b"by %d" % winner


async def test_a_put_is_done_completely_or_not_at_all_if_the_clock_jumps_within_a_text() -> None:
    """Each use of the clock is half a second later than the one before."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        start_us = sample.world.now_us
        uses = iter(range(0, 10**9, 500_000))
        endpoint.engine.clock = lambda: start_us + next(uses)
        results = [(await sample.store.put([put]))[0] for put in _puts(sample.world, 12)]
        outcomes = [result.outcome for result in results]
        assert set(outcomes) == {PutOutcome.DONE, PutOutcome.TOO_LATE}
        endpoint.engine.clock = lambda: start_us
        there = await sample.store.get([f"a{n}" for n in range(12)])
        assert [action is not None for action in there] == [outcome is PutOutcome.DONE for outcome in outcomes]
        await sample.check_invariant()


async def test_a_put_that_begins_in_time_is_also_committed_in_time() -> None:
    """The server reads its clock when a text begins, and then works on it for as long as the request may take."""
    limits = LONG_LIMITS._replace(timeout_s=5.0)
    async with running_endpoint() as endpoint, sample_installation(endpoint, limits) as sample:
        now_us = sample.world.now_us
        endpoint.engine.clock = lambda: now_us
        for age_s in range(22):
            put = sample.world.create(f"a{age_s}")._replace(created_at_us=now_us - age_s * SECOND_US)
            [result] = await sample.store.put([put])
            is_in_time = (age_s + limits.timeout_s) * SECOND_US <= CALL_RETRY_US
            assert (result.outcome is PutOutcome.DONE) is is_in_time
            assert result.outcome in (PutOutcome.DONE, PutOutcome.TOO_LATE)


def _puts(world: World, count: int) -> list[Put]:
    return [world.create(f"a{n}", shard_id=n % 2) for n in range(count)]
