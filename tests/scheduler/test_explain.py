"""The first line of an explanation is the right reason, in every situation that users meet."""

import asyncio

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from clepsydra.core.action.events import Decision
from clepsydra.core.times import DAY_US, HOUR_US, MINUTE_US, SECOND_US, duration, duration_us, timestamp, us_of
from clepsydra.scheduler.errors import NotFound
from clepsydra.store.memory.store import ShardLock
from clepsydra.tools.format.actions import format_next
from clepsydra.v1.action_pb2 import LogLine, Meta, Retention, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import (
    CancelActionRequest,
    ExplainActionRequest,
    ExplainActionResponse,
    PauseActionRequest,
    UpdateActionRequest,
)
from clepsydra.worker.targets.failures import failure
from tests.scheduler.a_worker import AWorker
from tests.scheduler.desk import Desk, a_create, story


async def explain(desk: Desk) -> ExplainActionResponse:
    explained = await desk.scheduler.explain(ExplainActionRequest(id="a"))
    # One sentence that can stand alone.
    assert explained.answer.endswith(".")
    assert "\n" not in explained.answer
    return explained


async def due_now(desk: Desk, **spec: object) -> None:
    await desk.scheduler.create(a_create(spec=Spec(log=LogLine(message="ping"), **spec)))  # type: ignore[arg-type]


@story
async def test_in_the_future(desk: Desk) -> None:
    await desk.create()
    await AWorker(desk).lock()
    explained = await explain(desk)
    assert explained.reason == "FUTURE"
    assert explained.answer.startswith("It waits for 20")
    assert explained.answer.endswith("Z (in 1m).")
    assert explained.waits_for == "Its time."
    assert (explained.row.queue, explained.lock.worker) == ("incoming_queue", "the-worker")
    assert explained.action.meta.id == "a"
    assert [stage.name for stage in explained.stages] == ["came in"]


@story
async def test_due_and_about_to_start(desk: Desk) -> None:
    await due_now(desk)
    await AWorker(desk).lock()
    explained = await explain(desk)
    assert explained.reason == "DUE"
    assert "and about to start" in explained.answer
    assert explained.lock.held


@story
async def test_due_and_nobody_holds_its_shard(desk: Desk) -> None:
    await due_now(desk)
    shard_id = (await explain(desk)).row.shard
    now_us = desk.clock.now_us()
    desk.store.shard_locks[(shard_id + 1) % desk.store.shards] = ShardLock(True, "g", "other", now_us, now_us)
    explained = await explain(desk)
    assert explained.reason == "DUE"
    assert explained.answer.endswith(f"and no worker holds shard {shard_id}.")


@story
async def test_paused(desk: Desk) -> None:
    await desk.create()
    await desk.scheduler.pause(PauseActionRequest(id="a"))
    explained = await explain(desk)
    assert explained.reason == "PAUSED"
    assert explained.answer.startswith("It was paused on 20")
    assert "clepsydra resume a" in explained.next


@story
async def test_running(desk: Desk) -> None:
    await due_now(desk)
    await AWorker(desk).begin()
    explained = await explain(desk)
    assert explained.reason == "RUNNING"
    assert explained.answer.startswith("It is running: attempt 1 on worker the-worker since 20")
    assert explained.action.running.worker == "the-worker"
    assert [stage.name for stage in explained.stages][-1] == "was begun"


@story
async def test_retrying(desk: Desk) -> None:
    await due_now(desk)
    worker = AWorker(desk)
    for _ in range(3):
        await worker.begin()
        await worker.end(failure("not today"))
        await asyncio.sleep(0 if _ == 2 else 10)
    await worker.heartbeat()
    explained = await explain(desk)
    assert explained.reason == "RETRYING"
    assert explained.answer.startswith("It failed 3 times; the next attempt is at 20")
    assert "not today" in explained.next
    assert [stage.name for stage in explained.stages][-2:] == ["started", "ended"]


@story
async def test_interrupted(desk: Desk) -> None:
    await due_now(desk)
    worker = AWorker(desk)
    await worker.begin()
    await asyncio.sleep(60)
    await worker.heartbeat()
    explained = await explain(desk)
    assert explained.reason == "INTERRUPTED"
    assert explained.answer.startswith("Its attempt was interrupted: the lease ended at 20")
    # Found by a worker, which counts it and begins the next attempt, whose worker then falls silent.
    assert await worker.begin() is Decision.INTERRUPT
    assert (await explain(desk)).reason == "RUNNING"
    await asyncio.sleep(20)
    explained = await explain(desk)
    assert explained.reason == "INTERRUPTED"
    assert "has given no sign of life for 20s" in explained.answer


@story
async def test_expired(desk: Desk) -> None:
    await due_now(desk, start_deadline=duration(SECOND_US))
    await asyncio.sleep(30)
    worker = AWorker(desk)
    assert await worker.begin() is Decision.EXPIRE
    explained = await explain(desk)
    assert explained.reason == "EXPIRED"
    assert explained.answer.startswith("It expired: it could not start within its start deadline")


@story
async def test_ended(desk: Desk) -> None:
    await due_now(desk)
    worker = AWorker(desk)
    await worker.begin()
    await worker.succeed()
    explained = await explain(desk)
    assert explained.reason == "ENDED"
    assert explained.answer.endswith("its last attempt succeeded.")
    assert explained.next.startswith("Its record is kept until 20")


@story
async def test_an_ended_action_is_kept_as_long_as_its_retention_says_now(desk: Desk) -> None:
    await due_now(desk)
    worker = AWorker(desk)
    await worker.begin()
    await worker.succeed()
    assert (await explain(desk)).next.endswith("(in 1d).")
    longer = Spec(retention=Retention(after_success=duration(3 * DAY_US)))
    mask = FieldMask(paths=["spec.retention.after_success"])
    await desk.scheduler.update(
        UpdateActionRequest(action=ScheduledAction(meta=Meta(id="a"), spec=longer), update_mask=mask)
    )
    assert (await explain(desk)).next.endswith("(in 3d).")
    shown = await desk.get()
    assert format_next(shown, 0).startswith("kept until 2027-01-18T08:00:00")


@story
async def test_failed_and_cancelled_have_ended_too(desk: Desk) -> None:
    await due_now(desk)
    worker = AWorker(desk)
    await worker.begin()
    await worker.end(failure("no such table", retryable=False))
    explained = await explain(desk)
    assert explained.reason == "ENDED"
    assert explained.answer.startswith("It failed at 20")
    assert "no such table" in explained.answer
    await desk.delete()
    await desk.create()
    await desk.scheduler.cancel(CancelActionRequest(id="a"))
    explained = await explain(desk)
    assert (explained.reason, explained.answer[:19]) == ("ENDED", "It was cancelled on")


@story
async def test_deleted(desk: Desk) -> None:
    await desk.create()
    deleted_us = desk.clock.now_us()
    await desk.delete()
    await asyncio.sleep(60)
    explained = await explain(desk)
    assert explained.reason == "DELETED"
    assert explained.answer.startswith("It was deleted on 20")
    assert explained.answer.endswith("(1m ago).")
    assert us_of(explained.row.scheduled_time) == deleted_us + HOUR_US
    assert explained.next.startswith("It is purged at 20")


@story
async def test_an_action_that_nobody_remembers_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound):
        await explain(desk)


@story
async def test_no_worker_alive(desk: Desk) -> None:
    await due_now(desk)
    explained = await explain(desk)
    assert explained.reason == "NO_WORKER"
    assert explained.answer.endswith("and no worker is alive: none has ever worked.")
    await AWorker(desk).lock()
    assert (await explain(desk)).reason == "DUE"
    await asyncio.sleep(300)
    explained = await explain(desk)
    assert explained.reason == "NO_WORKER"
    assert explained.answer.endswith("and no worker is alive: the last heartbeat was 5m ago.")


@story
async def test_a_lock_held_by_a_dead_worker(desk: Desk) -> None:
    await due_now(desk)
    await AWorker(desk, "dead").lock()
    await asyncio.sleep(60)
    shard_id = (await explain(desk)).row.shard
    now_us = desk.clock.now_us()
    desk.store.shard_locks[(shard_id + 1) % desk.store.shards] = ShardLock(True, "g", "alive", now_us, now_us)
    explained = await explain(desk)
    assert explained.reason == "DEAD_WORKER"
    assert f"shard {shard_id} is locked by worker dead, which has given no sign of life for 1m." in explained.answer


@story
async def test_a_worker_without_its_handler(desk: Desk) -> None:
    """The text is the worker's: an end-to-end test shows that it is recognised."""
    await due_now(desk)
    worker = AWorker(desk)
    await worker.begin()
    await worker.end(failure('no handler named "x" is registered on worker w'))
    explained = await explain(desk)
    assert explained.reason == "NO_HANDLER"
    assert explained.answer.startswith("The worker that tried it does not have its handler: no handler named")


@story
async def test_the_stage_that_made_a_run_late(desk: Desk) -> None:
    """It came in on time and waited 40 seconds for a worker."""
    start_us = desk.clock.now_us() + MINUTE_US
    spec = Spec(schedule=Schedule(start_time=timestamp(start_us)), log=LogLine())
    await desk.scheduler.create(a_create(spec=spec))
    await asyncio.sleep(100)
    worker = AWorker(desk)
    await worker.begin()
    begun = (await explain(desk)).stages
    assert [(stage.name, stage.made_it_late) for stage in begun] == [
        ("came in", False),
        ("was due", False),
        ("was begun", True),
    ]
    assert duration_us(begun[-1].took) == 40 * SECOND_US
    await asyncio.sleep(2)
    await worker.succeed()
    ended = (await explain(desk)).stages
    assert [stage.name for stage in ended] == ["came in", "was due", "started", "ended"]
    assert [stage.made_it_late for stage in ended] == [False, False, True, False]
    assert duration_us(ended[-1].took) == 2 * SECOND_US


@story
async def test_a_change_after_the_last_run_is_no_stage_of_it(desk: Desk) -> None:
    """A cancellation, or a resume, writes a row of its own: it neither planned the run nor made it late."""
    await due_now(desk, attempt_timeout=duration(HOUR_US))
    worker = AWorker(desk)
    await worker.begin()
    await asyncio.sleep(8)
    await desk.scheduler.cancel(CancelActionRequest(id="a"))
    cancelled = (await explain(desk)).stages
    assert [stage.name for stage in cancelled] == ["was due", "started", "ended"]
    assert not any(stage.made_it_late for stage in cancelled)


@story
async def test_an_attempt_runs_since_no_earlier_than_its_row_came_in(desk: Desk) -> None:
    """Another target: the plan is kept, and the next attempt begins later than it was planned."""
    await due_now(desk, attempt_timeout=duration(HOUR_US))
    worker = AWorker(desk)
    await worker.begin()
    await asyncio.sleep(8)
    changed_us = desk.clock.now_us()
    other = ScheduledAction(meta=Meta(id="a"), spec=Spec(log=LogLine(message="pong")))
    await desk.scheduler.update(UpdateActionRequest(action=other, update_mask=FieldMask(paths=["spec.log"])))
    await worker.begin()
    assert us_of((await desk.get()).running.start_time) == changed_us
    await asyncio.sleep(20)
    await worker.heartbeat()
    await worker.extend()
    explained = await explain(desk)
    assert us_of(explained.action.running.start_time) == changed_us
    assert explained.answer.endswith("(20s ago).")


@story
async def test_an_action_that_cannot_be_decoded(desk: Desk) -> None:
    await desk.create()
    desk.store.actions["a"] = desk.store.actions["a"]._replace(status=b"\xff")
    explained = await desk.scheduler.explain(ExplainActionRequest(id="a"))
    assert explained.reason == "UNREADABLE"
    await desk.delete()


@story
async def test_an_action_without_a_row(desk: Desk) -> None:
    await desk.create()
    desk.store.rows.clear()
    explained = await explain(desk)
    assert explained.reason == "DAMAGED"
    assert "clepsydra audit --repair" in explained.next
    desk.store.actions.clear()
