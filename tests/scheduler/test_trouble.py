"""When the store fails: what is repeated, what is told, and what is never done twice."""

import asyncio

import pytest

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.core.times import SECOND_US
from clepsydra.scheduler.errors import AlreadyExists, NotFound, OutcomeUnknown, StoreUnavailable
from clepsydra.scheduler.writes.call import TRIES_MAX
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Status
from clepsydra.v1.scheduler_pb2 import DeleteActionRequest, ListActionsRequest, PauseActionRequest
from tests.scheduler.desk import Desk, Trouble, a_spec, settled, story
from tests.scheduler.test_update import an_update, update

LOST = [Trouble.LOST_ON_THE_WAY, Trouble.LOST_ON_THE_WAY_BACK]


@story
async def test_a_store_that_did_nothing_is_asked_again(desk: Desk) -> None:
    desk.store.troubles.extend([Trouble.UNAVAILABLE] * (TRIES_MAX - 1))

    created = await desk.create("a")

    assert await desk.get("a") == created
    assert len(desk.store.batches) == TRIES_MAX


@story
async def test_a_few_times_and_then_the_caller_is_told_that_nothing_was_done(desk: Desk) -> None:
    desk.store.troubles.extend([Trouble.UNAVAILABLE] * TRIES_MAX)

    with pytest.raises(StoreUnavailable, match="nothing was done: the line is down"):
        await desk.create("a")

    assert desk.store.actions == {}
    assert desk.clock.monotonic_us() < 5 * SECOND_US


@story
async def test_a_store_that_cannot_be_used_is_not_asked_again(desk: Desk) -> None:
    desk.store.troubles.append(Trouble.UNUSABLE)

    with pytest.raises(StoreUnavailable, match="the schema is too new"):
        await desk.create("a")

    assert len(desk.store.batches) == 1


@pytest.mark.parametrize("lost", LOST)
def test_after_a_try_of_unknown_outcome_the_very_same_put_is_repeated(lost: Trouble) -> None:
    @story
    async def tell(desk: Desk) -> None:
        desk.store.troubles.extend([lost] * 3)

        created = await desk.create("a")

        assert await desk.get("a") == created
        assert len(desk.store.puts) == 4
        assert all(put is desk.store.puts[0] for put in desk.store.puts)
        assert len(desk.store.rows) == 1

    tell()


@pytest.mark.parametrize("lost", LOST)
def test_an_unknown_outcome_is_told_when_there_is_no_time_left(lost: Trouble) -> None:
    @story
    async def tell(desk: Desk) -> None:
        desk.store.troubles.extend([lost] * 1000)

        with pytest.raises(OutcomeUnknown, match="may have taken effect"):
            await desk.create("a")

        assert CALL_RETRY_US <= desk.clock.monotonic_us() < CALL_RETRY_US + 2 * SECOND_US

    tell()


@story
async def test_an_unavailable_store_is_asked_to_the_end_once_an_outcome_is_unknown(desk: Desk) -> None:
    desk.store.troubles.extend([Trouble.LOST_ON_THE_WAY_BACK] + [Trouble.UNAVAILABLE] * (TRIES_MAX + 5))

    await desk.create("a")

    assert len(desk.store.actions) == 1


@story
async def test_a_call_that_was_on_its_way_for_too_long_was_not_done(desk: Desk) -> None:
    async def a_long_time_passes() -> None:
        desk.clock.epoch_us += CALL_RETRY_US + 1

    desk.store.meanwhile.append(a_long_time_passes)

    with pytest.raises(StoreUnavailable, match="too long"):
        await desk.create("a")

    assert desk.store.actions == {}


@story
async def test_unless_an_earlier_try_may_have_done_it(desk: Desk) -> None:
    async def nothing() -> None:
        """The first try is lost in time."""

    async def a_long_time_passes() -> None:
        desk.clock.epoch_us += CALL_RETRY_US + 1

    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY)
    desk.store.meanwhile.extend([nothing, a_long_time_passes])

    with pytest.raises(OutcomeUnknown, match="too long"):
        await desk.create("a")


@story
async def test_what_was_created_and_then_deleted_by_others_does_not_come_back_to_life(desk: Desk) -> None:
    """The retry finds a tombstone, which alone would be no obstacle to a creation."""
    created = asyncio.create_task(desk.create("a"))
    await after_a_lost_answer(desk)

    with pytest.raises(OutcomeUnknown):
        await created

    with pytest.raises(NotFound):
        await desk.get("a")
    assert len(desk.store.rows) == 2


@story
async def test_with_a_request_id_such_a_creation_is_known_to_be_done(desk: Desk) -> None:
    created = asyncio.create_task(desk.create("a", request_id="r-1"))
    await after_a_lost_answer(desk)

    answer = await created

    assert answer.meta.revision == 1
    with pytest.raises(NotFound):
        await desk.get("a")


async def after_a_lost_answer(desk: Desk) -> None:
    """The creation is done, its answer is lost, and others delete the action before it is tried again."""
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)
    await settled()
    assert len(desk.store.batches) == 1
    await desk.delete("a")


@story
async def test_a_failed_precondition_is_unknown_after_an_unknown_try(desk: Desk) -> None:
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY)
    created = asyncio.create_task(desk.create("a"))
    await settled()
    await desk.create("a", spec=a_spec(delay_s=1))

    with pytest.raises(OutcomeUnknown, match="exists already"):
        await created


@story
async def test_an_update_is_not_proposed_anew_after_an_unknown_try(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY)
    updated = asyncio.create_task(update(desk, a_spec(delay_s=1)))
    await settled()
    others = await desk.another_scheduler().update(an_update(a_spec(delay_s=2)))

    with pytest.raises(OutcomeUnknown):
        await updated

    assert (await desk.get("a")).meta == others.meta


@story
async def test_an_update_whose_answer_was_lost_is_done(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)

    updated = await update(desk, a_spec(delay_s=1))

    assert await desk.get("a") == updated
    assert updated.meta.revision == 2


@story
async def test_an_update_with_a_request_id_is_known_to_be_done_whatever_came_after(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)
    updated = asyncio.create_task(update(desk, a_spec(delay_s=1), request_id="r-1"))
    await settled()
    await desk.another_scheduler().update(an_update(a_spec(delay_s=2)))

    assert (await updated).meta.revision == 2


@story
async def test_a_change_of_labels_whose_answer_was_lost_is_done(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)

    labelled = await update(desk, None, "meta.labels", labels={"team": "billing"})

    assert await desk.get("a") == labelled


@story
async def test_a_deletion_whose_answer_was_lost_is_done(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)

    await desk.delete("a")

    assert Status.FromString(desk.store.actions["a"].status).state == action_pb2.DELETED


@story
async def test_a_deletion_that_may_find_nothing_is_content_with_a_tombstone(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY)
    deleted = asyncio.create_task(desk.delete("a", allow_missing=True))
    await settled()
    await desk.another_scheduler().delete(DeleteActionRequest(id="a"))

    await deleted


@story
async def test_a_caller_who_leaves_ends_the_retries(desk: Desk) -> None:
    desk.store.troubles.extend([Trouble.LOST_ON_THE_WAY] * 1000)
    created = asyncio.create_task(desk.create("a"))
    await asyncio.sleep(3)

    created.cancel()
    with pytest.raises(asyncio.CancelledError):
        await created
    tries = len(desk.store.batches)
    await asyncio.sleep(30)

    assert len(desk.store.batches) == tries


@story
async def test_reads_are_retried_as_well(desk: Desk) -> None:
    created = await desk.create("a")
    desk.store.look_troubles.extend([Trouble.UNAVAILABLE, Trouble.LOST_ON_THE_WAY, Trouble.LOST_ON_THE_WAY_BACK])

    assert await desk.get("a") == created


@story
async def test_but_not_for_ever(desk: Desk) -> None:
    desk.store.look_troubles.extend([Trouble.UNAVAILABLE] * TRIES_MAX)
    with pytest.raises(StoreUnavailable, match="the line is down"):
        await desk.get("a")
    desk.store.look_troubles.extend([Trouble.UNAVAILABLE] * TRIES_MAX)
    with pytest.raises(StoreUnavailable):
        await desk.scheduler.pause(PauseActionRequest(id="a"))
    desk.store.look_troubles.append(Trouble.UNUSABLE)
    with pytest.raises(StoreUnavailable, match="the schema is too new"):
        await desk.get("a")


@story
async def test_a_listing_is_retried_as_well(desk: Desk) -> None:
    await desk.create("a")
    desk.store.list_troubles.extend([Trouble.UNAVAILABLE, Trouble.LOST_ON_THE_WAY])

    assert len((await desk.scheduler.list_actions(ListActionsRequest())).actions) == 1
    desk.store.list_troubles.extend([Trouble.UNAVAILABLE] * TRIES_MAX)
    with pytest.raises(StoreUnavailable, match="the line is down"):
        await desk.scheduler.list_actions(ListActionsRequest())


@story
async def test_a_defect_of_the_store_is_not_swallowed(desk: Desk) -> None:
    async def defect() -> None:
        raise ZeroDivisionError

    desk.store.meanwhile.append(defect)

    with pytest.raises(ZeroDivisionError):
        await desk.create("a")

    await desk.create("b")


@story
async def test_one_trouble_of_a_shared_batch_is_everybodys_and_all_recover(desk: Desk) -> None:
    desk.store.troubles.append(Trouble.LOST_ON_THE_WAY_BACK)

    await asyncio.gather(*(desk.create(f"a{number}") for number in range(20)))

    assert len(desk.store.actions) == len(desk.store.rows) == 20


@story
async def test_of_many_who_create_the_same_one_succeeds_even_on_a_bad_line(desk: Desk) -> None:
    desk.store.troubles.extend([Trouble.UNAVAILABLE, Trouble.UNAVAILABLE])

    outcomes = await asyncio.gather(*(desk.create("a") for _ in range(5)), return_exceptions=True)

    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 4
    assert len(desk.store.rows) == 1
