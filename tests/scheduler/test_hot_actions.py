"""Many changes of one action at once: they are put one after the other, in order, and none of them fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import SECOND_US
from clepsydra.scheduler.errors import DeadlinePassed, EtagMismatch, NotFound, OutcomeUnknown, WrongState
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings
from clepsydra.store.sqlite.store import SqliteStore
from clepsydra.store.url import open_store
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, PythonHandler, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    BatchDeleteActionsRequest,
    DeleteActionRequest,
    GetActionRequest,
    PauseActionRequest,
    ResumeActionRequest,
    UpdateActionRequest,
)
from tests.scheduler.desk import Desk, Trouble, a_create, a_spec, at_a_desk, settled, story
from tests.scheduler.test_update import a_worker_succeeds, an_update

CLIENTS = 60


def numbered(number: int, **fields: Any) -> UpdateActionRequest:
    """Another target: a new life."""
    return an_update(Spec(handler=PythonHandler(name=f"h{number}")), "spec.handler", **fields)


async def at_once(scheduler: Scheduler, *requests: UpdateActionRequest) -> list[Any]:
    return await asyncio.gather(*map(scheduler.update, requests), return_exceptions=True)


def check_chain(responses: list[Any], final: ScheduledAction) -> None:
    """Each call has the response of its own change, and the last in order is what is stored."""
    assert [response.spec.handler.name for response in responses] == [f"h{n}" for n in range(len(responses))]
    assert [response.meta.revision for response in responses] == [n + 2 for n in range(len(responses))]
    assert len({response.meta.guid for response in responses}) == len(responses)
    assert final.meta == responses[-1].meta
    assert final.spec.handler.name == f"h{len(responses) - 1}"


@story
async def test_changes_that_wait_together_are_put_as_one_in_their_order(desk: Desk) -> None:
    await desk.create("a")

    responses = await at_once(desk.scheduler, *map(numbered, range(CLIENTS)))

    check_chain(responses, await desk.get("a"))
    # The creation, the first change, and all others together.
    assert len(desk.store.batches) == 3
    current = {action.guid for action in desk.store.actions.values()}
    stored = {key[4] for key in desk.store.rows}
    assert len(stored) == 3
    assert current < stored, "lives in between were never written"


def test_sixty_clients_on_one_action_of_a_file(tmp_path: Path) -> None:
    async def tell() -> None:
        await SqliteStore.install(str(tmp_path / "hot.db"), 4)
        store = await open_store(f"sqlite:///{tmp_path / 'hot.db'}", SystemClock())
        scheduler = Scheduler(store, SystemClock(), Ids.from_system(), SchedulerSettings())
        await scheduler.create(a_create("a"))
        responses = await at_once(scheduler, *map(numbered, range(CLIENTS)))
        check_chain(responses, await scheduler.get(GetActionRequest(id="a")))
        audit = await store.audit(1)
        assert (audit.actions, audit.live_rows, audit.violations) == (1, 1, [])
        await scheduler.close()
        await store.close()

    asyncio.run(tell())


@story
async def test_clients_that_come_back_at_once_all_succeed(desk: Desk) -> None:
    await desk.create("a")

    async def client(number: int) -> None:
        for _ in range(5):
            await desk.scheduler.update(numbered(number))

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))

    assert (await desk.get("a")).meta.revision == 1 + 5 * CLIENTS
    assert len(desk.store.batches) <= 2 + 5 * 3


@story
async def test_etags_and_states_are_judged_in_order(desk: Desk) -> None:
    created = await desk.create("a")

    results: Any = await asyncio.gather(
        desk.scheduler.update(numbered(0, etag=created.meta.etag)),
        desk.scheduler.update(numbered(1, etag=created.meta.etag)),
        desk.scheduler.pause(PauseActionRequest(id="a")),
        desk.scheduler.pause(PauseActionRequest(id="a")),
        desk.scheduler.resume(ResumeActionRequest(id="a")),
        return_exceptions=True,
    )

    first, second, paused, again, resumed = results
    assert isinstance(second, EtagMismatch)
    assert isinstance(again, WrongState)
    assert [first.meta.revision, paused.meta.revision, resumed.meta.revision] == [2, 3, 4]
    assert await desk.get("a") == resumed


@story
async def test_settings_and_lives_can_be_mixed(desk: Desk) -> None:
    await desk.create("a")
    settings = an_update(Spec(interruption_limit=5), "spec.interruption_limit")

    await at_once(desk.scheduler, settings, numbered(0), settings, an_update(None, "meta.labels", labels={"x": "y"}))

    after = await desk.get("a")
    assert (after.meta.revision, after.spec.interruption_limit, after.spec.handler.name) == (5, 5, "h0")
    assert dict(after.meta.labels) == {"x": "y"}
    assert desk.live_row_times("a") == [desk.store.actions["a"].scheduled_at_us]


@story
async def test_each_call_of_a_chain_is_recognised_when_it_is_repeated(desk: Desk) -> None:
    await desk.create("a")
    requests = [numbered(n, request_id=f"r-{n}") for n in range(CLIENTS)]
    first = await at_once(desk.scheduler, *requests)

    replayed = await at_once(desk.scheduler, *requests)

    assert [each.meta.guid for each in replayed] == [each.meta.guid for each in first]
    assert (await desk.get("a")).meta.revision == CLIENTS + 1


@story
async def test_a_chain_of_unknown_outcome_is_repeated_as_it_was_sent(desk: Desk) -> None:
    await desk.create("a")
    desk.store.troubles.extend([None, Trouble.LOST_ON_THE_WAY_BACK])

    responses = await at_once(desk.scheduler, *map(numbered, range(4)))

    check_chain(responses, await desk.get("a"))
    assert desk.store.puts[-1] == desk.store.puts[-2]


@pytest.mark.parametrize("with_ids", [True, False])
def test_after_an_unknown_try_and_a_change_by_others_only_request_ids_tell(with_ids: bool) -> None:
    @story
    async def tell(desk: Desk) -> None:
        await desk.create("a")
        desk.store.troubles.extend([None, Trouble.LOST_ON_THE_WAY_BACK])
        fields = [{"request_id": f"r-{n}"} if with_ids else {} for n in range(4)]
        changing = asyncio.create_task(at_once(desk.scheduler, *(numbered(n, **fields[n]) for n in range(4))))
        await settled()
        await desk.another_scheduler().update(numbered(9))

        _, *chained = await changing

        kinds = {type(each) for each in chained}
        assert kinds == ({ScheduledAction} if with_ids else {OutcomeUnknown})
        assert (await desk.get("a")).meta.revision == 6

    tell()


@story
async def test_what_was_judged_on_a_change_that_failed_is_not_told(desk: Desk) -> None:
    """The action still exists: the deletion was not written, so no caller gets NOT_FOUND."""
    await desk.create("a")
    held = desk.store.held_up = asyncio.Event()
    first = asyncio.create_task(desk.scheduler.update(numbered(0)))
    await settled()
    deleted = asyncio.create_task(desk.scheduler.delete(DeleteActionRequest(id="a")))
    updated = asyncio.create_task(desk.scheduler.update(numbered(1)))
    desk.store.troubles.extend([None, *[Trouble.UNUSABLE] * 2])
    held.set()

    await first
    results = await asyncio.gather(deleted, updated, return_exceptions=True)

    assert [str(result).split(":")[0] for result in results] == ["the store is not available, and nothing was done"] * 2
    assert (await desk.get("a")).spec.handler.name == "h0"


@story
async def test_a_chain_is_planned_again_if_a_worker_was_faster(desk: Desk) -> None:
    await desk.create("a", spec=a_spec(delay_s=0))
    held = desk.store.held_up = asyncio.Event()
    labelled = asyncio.create_task(desk.scheduler.update(an_update(None, "meta.labels", labels={"x": "y"})))
    await settled()
    others = asyncio.create_task(at_once(desk.scheduler, *map(numbered, range(3))))
    await settled()

    async def nothing() -> None:
        return

    desk.store.meanwhile.extend([nothing, lambda: a_worker_succeeds(desk)])
    held.set()
    await asyncio.gather(labelled, others)

    after = await desk.get("a")
    assert (after.status.state, after.spec.handler.name) == (action_pb2.SUCCEEDED, "h2")


@story
async def test_a_caller_that_leaves_or_has_waited_too_long_takes_its_change_back(desk: Desk) -> None:
    await desk.create("a")
    held = desk.store.held_up = asyncio.Event()
    tasks = [asyncio.create_task(desk.scheduler.update(numbered(0)))]
    await settled()
    tasks.append(asyncio.create_task(desk.scheduler.update(numbered(1))))
    tasks.append(asyncio.create_task(desk.scheduler.update(numbered(2), 1.0)))
    tasks.append(asyncio.create_task(desk.scheduler.update(numbered(3))))
    await settled()
    tasks[1].cancel()
    await asyncio.sleep(2)
    held.set()

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(results[1], asyncio.CancelledError)
    assert isinstance(results[2], DeadlinePassed)
    after = await desk.get("a")
    assert (after.spec.handler.name, after.meta.revision) == ("h3", 3)


@story
async def test_the_caller_that_is_first_may_leave_too(desk: Desk) -> None:
    await desk.create("a")
    held = desk.store.held_up = asyncio.Event()
    first = asyncio.create_task(desk.scheduler.update(numbered(0)))
    await settled()
    second = asyncio.create_task(desk.scheduler.update(numbered(1)))
    await settled()
    first.cancel()
    held.set()

    assert (await second).spec.handler.name == "h1"


@story
async def test_a_batch_may_name_an_action_twice(desk: Desk) -> None:
    await desk.create("a")
    request = BatchDeleteActionsRequest(requests=[DeleteActionRequest(id="a"), DeleteActionRequest(id="a")])
    results = (await desk.scheduler.batch_delete(request)).results

    assert [result.WhichOneof("result") for result in results] == ["deleted", "error"]
    with pytest.raises(NotFound):
        await desk.get("a")


@at_a_desk(pending_items=3)
async def test_no_more_changes_wait_than_fit(desk: Desk) -> None:
    await desk.create("a")

    results = await at_once(desk.scheduler, *map(numbered, range(8)))

    assert [str(each)[:13] for each in results if isinstance(each, Exception)] == ["the scheduler"] * 4
    assert (await desk.get("a")).meta.revision == 5


@story
async def test_an_action_that_is_changed_holds_up_no_other(desk: Desk) -> None:
    await desk.create("a")
    await desk.create("b")
    desk.store.troubles.extend([Trouble.LOST_ON_THE_WAY] * 5)
    slow = asyncio.create_task(desk.scheduler.update(numbered(0)))
    await settled()
    desk.store.troubles.clear()

    request = an_update(Spec(handler=PythonHandler(name="f")), "spec.handler")
    request.action.meta.CopyFrom(Meta(id="b"))
    await desk.scheduler.update(request)

    assert not slow.done()
    assert desk.clock.monotonic_us() < SECOND_US
    await slow
