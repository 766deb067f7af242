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
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead

# With these the server says that it did nothing.
REFUSALS = [Status.ABORTED, Status.OVERLOADED, Status.BAD_SESSION]
# After these the outcome is unknown, whether the work was done or not.
UNCERTAIN = [Status.UNAVAILABLE, Status.UNDETERMINED, Status.SESSION_EXPIRED]

# Each makes a fault for the text with the given name.
FaultMakers = dict[str, Callable[[str], Fault]]
NOT_DONE: FaultMakers = {status.name: partial(instead, status) for status in REFUSALS}
UNKNOWN_NOT_DONE: FaultMakers = {
    **{f"{status.name} before": partial(instead, status) for status in UNCERTAIN},
    "cut before": partial(Fault, Kind.CUT_BEFORE),
}
UNKNOWN_DONE: FaultMakers = {
    **{f"{status.name} after": partial(afterwards, status) for status in UNCERTAIN},
    "cut after": partial(Fault, Kind.CUT_AFTER),
    "slow": partial(Fault, Kind.SLOW),
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
