"""Each fault in each call: nothing is lost, nothing is accepted twice, and the answer is the specification's."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import AdvanceOutcome
from tests.ydb.scenes import BRISK, IMPATIENT, PATIENT, READS, WRITES, Scene, running, scene
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead

# The server's word that it did nothing.
REFUSALS = [Status.ABORTED, Status.OVERLOADED, Status.BAD_SESSION]
# After these nobody knows, whether the work was done or not.
DOUBTS = [Status.UNAVAILABLE, Status.UNDETERMINED, Status.SESSION_EXPIRED]

# Each makes a fault for the text that it is to strike.
Planned = dict[str, Callable[[str], Fault]]
NOT_DONE: Planned = {status.name: partial(instead, status) for status in REFUSALS}
NOBODY_KNOWS_BUT_NOT_DONE: Planned = {
    **{f"{status.name} before": partial(instead, status) for status in DOUBTS},
    "cut before": partial(Fault, Kind.CUT_BEFORE),
}
NOBODY_KNOWS_AND_DONE: Planned = {
    **{f"{status.name} after": partial(afterwards, status) for status in DOUBTS},
    "cut after": partial(Fault, Kind.CUT_AFTER),
    "slow": partial(Fault, Kind.SLOW),
}
ALL = {**NOT_DONE, **NOBODY_KNOWS_BUT_NOT_DONE, **NOBODY_KNOWS_AND_DONE}

# What is done by a try that told nobody, and leaves no mark by which the next try could know it.
UNTOLD = {
    "remove": [AdvanceOutcome.UNKNOWN],
    "advance stale": [AdvanceOutcome.UNKNOWN],
    "migrate": 0,
}


@asynccontextmanager
async def staged(fault: str) -> AsyncIterator[tuple[Endpoint, Scene]]:
    limits = BRISK if fault == "slow" else PATIENT
    async with running(can_cut="cut" in fault) as endpoint, scene(endpoint, limits) as made:
        yield endpoint, made


@pytest.mark.parametrize("fault", ALL)
@pytest.mark.parametrize("call", WRITES)
async def test_a_write_comes_through_one_fault(call: str, fault: str) -> None:
    make, text = WRITES[call]
    async with staged(fault) as (endpoint, made):
        send = make(made)
        endpoint.faults.plan(ALL[fault](text))
        answer, wanted = await send(made.store), await send(made.model)
        if fault in NOBODY_KNOWS_AND_DONE:
            wanted = UNTOLD.get(call, wanted)
        assert answer == wanted
        assert endpoint.faults.struck == 1
        await made.assert_alike()


@pytest.mark.parametrize("call", READS)
async def test_a_read_comes_through_every_fault(call: str) -> None:
    make, text = READS[call]
    async with running(can_cut=True) as endpoint, scene(endpoint, BRISK) as made:
        send = make(made)
        wanted = await send(made.model)
        for struck, fault in enumerate(ALL, start=1):
            endpoint.faults.plan(ALL[fault](text))
            # What was acquired once is found again.
            assert await send(made.store) == wanted
            assert endpoint.faults.struck == struck
        await made.assert_alike()


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("fault", NOT_DONE)
async def test_a_write_that_is_refused_to_the_end_was_certainly_not_done(call: str, fault: str) -> None:
    make, text = WRITES[call]
    async with running() as endpoint, scene(endpoint, IMPATIENT) as made:
        send, planned = make(made), NOT_DONE[fault](text)
        planned.times = 1000
        endpoint.faults.plan(planned)
        with pytest.raises(Unavailable):
            await send(made.store)
        endpoint.faults.planned.clear()
        await made.assert_alike()
        assert await send(made.store) == await send(made.model)
        await made.assert_alike()


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("first", ["UNDETERMINED before", "UNDETERMINED after"])
async def test_one_doubt_is_never_forgotten(call: str, first: str) -> None:
    """A first try of unknown outcome, then nothing but refusals: the call may have been done."""
    make, text = WRITES[call]
    async with running() as endpoint, scene(endpoint, IMPATIENT) as made:
        send = make(made)
        endpoint.faults.plan(ALL[first](text), instead(Status.OVERLOADED, text, times=1000))
        with pytest.raises(OutcomeUnknown):
            await send(made.store)
        endpoint.faults.planned.clear()
        answer, wanted = await send(made.store), await send(made.model)
        untold = {"remove": [AdvanceOutcome.GONE], "advance stale": [AdvanceOutcome.GONE], "migrate": 0}
        assert answer == (untold.get(call, wanted) if first == "UNDETERMINED after" else wanted)
        await made.assert_alike()


@pytest.mark.parametrize("call", READS)
async def test_a_read_without_luck_is_unavailable(call: str) -> None:
    make, text = READS[call]
    async with running() as endpoint, scene(endpoint, IMPATIENT) as made:
        send = make(made)
        endpoint.faults.plan(instead(Status.UNAVAILABLE, text, times=1000))
        with pytest.raises(Unavailable):
            await send(made.store)
