"""Each fault in each call: nothing is lost, nothing is accepted twice, and the answer is the specification's."""

import pytest

from clepsydra.store.errors import OutcomeUnknown, Unavailable
from clepsydra.store.port import AdvanceOutcome
from tests.ydb.scenes import IMPATIENT, READS, SHORT, WRITES, Scene, running, scene
from tests.ydb_endpoint.errors import Status
from tests.ydb_endpoint.faults import Fault, Kind, afterwards, instead

# The server's word that it did nothing.
REFUSALS = [Status.ABORTED, Status.OVERLOADED, Status.BAD_SESSION, Status.SESSION_BUSY]
# After these nobody knows, whether the work was done or not.
DOUBTS = [Status.UNAVAILABLE, Status.UNDETERMINED, Status.SESSION_EXPIRED, Status.TIMEOUT, Status.CANCELLED]

NOT_DONE = {f"{status.name}": (lambda text, status=status: instead(status, text)) for status in REFUSALS}
NOBODY_KNOWS_BUT_NOT_DONE = {
    **{f"{status.name} before": (lambda text, status=status: instead(status, text)) for status in DOUBTS},
    "cut before": lambda text: Fault(Kind.CUT_BEFORE, text),
}
NOBODY_KNOWS_AND_DONE = {
    **{f"{status.name} after": (lambda text, status=status: afterwards(status, text)) for status in DOUBTS},
    "cut after": lambda text: Fault(Kind.CUT_AFTER, text),
    "slow": lambda text: Fault(Kind.SLOW, text),
}
ALL = {**NOT_DONE, **NOBODY_KNOWS_BUT_NOT_DONE, **NOBODY_KNOWS_AND_DONE}

# What is done by a try that told nobody, and leaves no mark by which the next try could know it.
UNTOLD = {
    "remove": [AdvanceOutcome.UNKNOWN],
    "advance stale": [AdvanceOutcome.UNKNOWN],
    "migrate": 0,
}


@pytest.mark.parametrize("fault", ALL)
@pytest.mark.parametrize("call", WRITES)
async def test_a_write_comes_through_one_fault(call: str, fault: str) -> None:
    make, text = WRITES[call]
    async with running(can_cut="cut" in fault) as endpoint, scene(endpoint) as made:
        send = make(made)
        endpoint.faults.plan(ALL[fault](text))
        answer, wanted = await send(made.store), await send(made.model)
        if fault in NOBODY_KNOWS_AND_DONE:
            wanted = UNTOLD.get(call, wanted)
        assert answer == wanted
        assert endpoint.faults.struck == 1
        await made.assert_alike()


@pytest.mark.parametrize("fault", ALL)
@pytest.mark.parametrize("call", READS)
async def test_a_read_comes_through_one_fault(call: str, fault: str) -> None:
    make, text = READS[call]
    async with running(can_cut="cut" in fault) as endpoint, scene(endpoint) as made:
        send = make(made)
        endpoint.faults.plan(ALL[fault](text))
        assert await send(made.store) == await send(made.model)
        assert endpoint.faults.struck == 1
        await made.assert_alike()


async def give_up(made: Scene, call: str, *faults: Fault) -> type[Exception]:
    """How a call ends that has no luck."""
    send = WRITES[call][0](made)
    made_faults = faults
    endpoint_faults = made.store  # the store under test
    del made_faults, endpoint_faults
    try:
        await send(made.store)
    except (Unavailable, OutcomeUnknown) as error:
        return type(error)
    raise AssertionError("the call came through")


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
    """A first try of unknown outcome, then nothing but refusals: the call may have been done, and is repeated as it was."""
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


async def test_the_limits_keep_a_call_shorter_than_it_may_be_retried() -> None:
    from clepsydra.core.limits import CALL_RETRY_US
    from clepsydra.store.ydb.location import Limits

    limits = Limits()
    # The last try begins before retry_s; it waits for a session, for a connection and for the answer.
    assert limits.retry_s + 2 * limits.timeout_s + 1 < CALL_RETRY_US / 1_000_000 + 2
    assert SHORT.retry_s > 0
