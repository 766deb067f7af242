"""Each fault in each call: nothing is lost or accepted twice, and the result is the same as the specification's."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import AdvanceOutcome
from tests.ydb.port_calls import READS, WRITES
from tests.ydb.sample_installation import (
    LONG_LIMITS,
    SHORT_RETRY,
    SHORT_TIMEOUT,
    SampleInstallation,
    running_endpoint,
    sample_installation,
)
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead, streamed, streamed_done

# With these the server says that it did nothing.
REFUSALS = [Status.ABORTED, Status.OVERLOADED, Status.BAD_SESSION]
# After these the outcome is unknown, whether the work was done or not.
UNCERTAIN = [Status.UNAVAILABLE, Status.UNDETERMINED, Status.SESSION_EXPIRED]

# Each makes a fault for the text with the given name.
FaultMakers = dict[str, Callable[[str], Fault]]
NOT_DONE: FaultMakers = {
    **{status.name: partial(instead, status) for status in REFUSALS},
    "rows, then ABORTED": partial(streamed, Status.ABORTED),
}
UNKNOWN_NOT_DONE: FaultMakers = {
    **{f"{status.name} before": partial(instead, status) for status in UNCERTAIN},
    "cut before": partial(Fault, Kind.CUT_BEFORE),
    "rows, then UNAVAILABLE": partial(streamed, Status.UNAVAILABLE),
}
UNKNOWN_DONE: FaultMakers = {
    **{f"{status.name} after": partial(afterwards, status) for status in UNCERTAIN},
    "cut after": partial(Fault, Kind.CUT_AFTER),
    "slow": partial(Fault, Kind.SLOW),
    "done and rows, then UNDETERMINED": partial(streamed_done, Status.UNDETERMINED),
}
ALL = {**NOT_DONE, **UNKNOWN_NOT_DONE, **UNKNOWN_DONE}

# The results of calls that leave no mark: the next try cannot recognise what a try of unknown outcome has done.
WITHOUT_MARK = {
    "remove": [AdvanceOutcome.UNKNOWN],
    "advance stale": [AdvanceOutcome.UNKNOWN],
    "migrate": 0,
}


@asynccontextmanager
async def sample_for(fault: str) -> AsyncIterator[tuple[Endpoint, SampleInstallation]]:
    limits = SHORT_TIMEOUT if fault == "slow" else LONG_LIMITS
    async with running_endpoint(can_cut="cut" in fault) as endpoint, sample_installation(endpoint, limits) as sample:
        yield endpoint, sample


@pytest.mark.parametrize("fault", ALL)
@pytest.mark.parametrize("call", WRITES)
async def test_a_write_survives_one_fault(call: str, fault: str) -> None:
    make, text = WRITES[call]
    async with sample_for(fault) as (endpoint, sample):
        send = make(sample)
        endpoint.faults.plan(ALL[fault](text))
        result, expected = await send(sample.store), await send(sample.model)
        if fault in UNKNOWN_DONE:
            expected = WITHOUT_MARK.get(call, expected)
        assert result == expected
        assert endpoint.faults.injected == 1
        await sample.check_equal()


@pytest.mark.parametrize("call", READS)
async def test_a_read_survives_every_fault(call: str) -> None:
    make, text = READS[call]
    async with running_endpoint(can_cut=True) as endpoint, sample_installation(endpoint, SHORT_TIMEOUT) as sample:
        send = make(sample)
        expected = await send(sample.model)
        for count, fault in enumerate(ALL, start=1):
            endpoint.faults.plan(ALL[fault](text))
            # A repeated acquire finds the lock that it has acquired.
            assert await send(sample.store) == expected
            assert endpoint.faults.injected == count
        await sample.check_equal()


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("fault", NOT_DONE)
async def test_a_write_that_every_try_refused_was_certainly_not_done(call: str, fault: str) -> None:
    make, text = WRITES[call]
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        send, planned = make(sample), NOT_DONE[fault](text)
        planned.times = 1000
        endpoint.faults.plan(planned)
        with pytest.raises(Unavailable):
            await send(sample.store)
        endpoint.faults.planned.clear()
        await sample.check_equal()
        assert await send(sample.store) == await send(sample.model)
        await sample.check_equal()


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("first", ["UNDETERMINED before", "UNDETERMINED after"])
async def test_a_try_of_unknown_outcome_is_remembered_until_the_call_ends(call: str, first: str) -> None:
    """A first try of unknown outcome, then only refusals: the call may have been done."""
    make, text = WRITES[call]
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        send = make(sample)
        endpoint.faults.plan(ALL[first](text), instead(Status.OVERLOADED, text, times=1000))
        with pytest.raises(OutcomeUnknown):
            await send(sample.store)
        endpoint.faults.planned.clear()
        result, expected = await send(sample.store), await send(sample.model)
        without_mark = {"remove": [AdvanceOutcome.GONE], "advance stale": [AdvanceOutcome.GONE], "migrate": 0}
        assert result == (without_mark.get(call, expected) if first == "UNDETERMINED after" else expected)
        await sample.check_equal()


@pytest.mark.parametrize("call", READS)
async def test_a_read_that_every_try_refused_is_unavailable(call: str) -> None:
    make, text = READS[call]
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        send = make(sample)
        endpoint.faults.plan(instead(Status.UNAVAILABLE, text, times=1000))
        with pytest.raises(Unavailable):
            await send(sample.store)


@pytest.mark.parametrize("call", WRITES)
async def test_a_partition_that_restarts_between_read_and_commit_costs_a_try(call: str) -> None:
    make, text = WRITES[call]
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        send = make(sample)
        endpoint.faults.plan(Fault(Kind.LOSE_LOCKS, text))
        assert await send(sample.store) == await send(sample.model)
        assert endpoint.faults.injected == 1
        await sample.check_equal()


async def test_a_batch_that_finds_too_much_in_store_is_done_in_halves() -> None:
    """The batch alone fits, but not together with the actions that it would replace."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        lives = [sample.world.create(f"a{n}", shard_id=0) for n in range(16)]
        large = [put._replace(action=put.action._replace(spec=bytes(1000))) for put in lives]
        await sample.call_both(lambda store: store.put(large))
        changes = [sample.world.change(put.action, shard_id=1) for put in large]
        endpoint.engine.limits.intermediate_bytes = 5000
        endpoint.engine.requests.clear()
        await sample.call_both(lambda store: store.put(changes))
        assert len([request for request in endpoint.engine.requests if request.call == "put"]) > 4
        await sample.check_equal()
