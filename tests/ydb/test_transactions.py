"""At the level of transactions: who overtakes whom, and who does not."""

from typing import Any

import pytest

from clepsydra.store.port import Advance, Mark, Put, Queue
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.sessions import Texts
from tests.conformance.worlds import begin
from tests.ydb.scenes import Scene, running, scene
from tests.ydb_endpoint import Endpoint, Evaluation
from tests.ydb_endpoint.compilation import compiled_text
from tests.ydb_endpoint.errors import Refused, Status
from tests.ydb_endpoint.execution import TextExecution
from tests.ydb_endpoint.storage import Transaction

BOTH = pytest.mark.parametrize("evaluation", [Evaluation.ONCE, Evaluation.AFRESH])


class Open:
    """A text that has done all its work but the commit."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._engine = endpoint.engine
        self.transaction: Transaction = endpoint.engine.database.begin(is_serializable=True)

    async def run(self, text: str, values: dict[str, Any]) -> list[Any]:
        compiled = compiled_text(text, self._engine.database)
        execution = TextExecution(
            compiled, values, self.transaction, self._engine.clock, self._engine.evaluation, self._engine._coin
        )
        return await execution.run()

    def commit(self) -> Status:
        try:
            self.transaction.commit()
        except Refused as refused:
            return refused.status
        return Status.SUCCESS


def named(endpoint: Endpoint, name: str) -> str:
    return Texts(f"{endpoint.engine.database.root}/clepsydra")[name]


def rows(typed: parameters.Typed) -> list[dict[str, Any]]:
    return [row._asdict() for row in typed[0]]


def put_values(*puts: Put) -> dict[str, Any]:
    return {
        "$puts": rows(parameters.puts(list(enumerate(puts)))),
        "$oldest_created_at": min(put.created_at_us for put in puts),
        "$call_retry": parameters.CALL_RETRY[0],
    }


def migrate_values(made: Scene, *names: str) -> dict[str, Any]:
    return {
        "$rows": rows(parameters.incoming_keys([made.rows[name] for name in names])),
        "$stale_incoming": [],
        "$stale_processing": [],
        "$sync_guid": "sync",
        "$at": made.world.tick(),
    }


def advance_values(mark: Mark, *advances: Advance) -> dict[str, Any]:
    return {
        "$advances": rows(parameters.advances(list(enumerate(advances)))),
        "$sync_guid": mark.sync_guid,
        "$at": mark.at_us,
    }


@BOTH
async def test_a_scheduler_that_inserts_and_a_worker_that_migrates_never_abort_each_other(
    evaluation: Evaluation,
) -> None:
    """Both have read and written everything before either commits, in the same shard, in both orders."""
    async with running(evaluation=evaluation) as endpoint, scene(endpoint) as made:
        for inserts_first in (True, False):
            put = made.world.create(f"new {inserts_first}", shard_id=0)
            name = "came in" if inserts_first else "new True"
            if not inserts_first:
                made.rows[name] = (await made.world.page(0)).incoming[-1].row
                assert made.rows[name].queue is Queue.INCOMING
            scheduler, worker = Open(endpoint), Open(endpoint)
            await worker.run(named(endpoint, "migrate"), migrate_values(made, name))
            await scheduler.run(named(endpoint, "put"), put_values(put))
            order = [scheduler, worker] if inserts_first else [worker, scheduler]
            assert [each.commit() for each in order] == [Status.SUCCESS, Status.SUCCESS]
        audit = await made.store.audit(10)
        assert (audit.without_row, audit.with_several_rows) == (0, 0)


@BOTH
async def test_a_scheduler_that_inserts_and_a_worker_that_begins_never_abort_each_other(
    evaluation: Evaluation,
) -> None:
    async with running(evaluation=evaluation) as endpoint, scene(endpoint) as made:
        scheduler, worker = Open(endpoint), Open(endpoint)
        await worker.run(
            named(endpoint, "advance_in_processing"), advance_values(made.world.mark(), begin(made.rows["waits"]))
        )
        await scheduler.run(named(endpoint, "put"), put_values(made.world.create("new", shard_id=0)))
        assert [scheduler.commit(), worker.commit()] == [Status.SUCCESS, Status.SUCCESS]


async def test_two_workers_on_different_rows_of_a_shard_never_abort_each_other() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        workers = [Open(endpoint), Open(endpoint)]
        for worker, name in zip(workers, ("waits", "ends"), strict=True):
            values = advance_values(made.world.mark(), begin(made.rows[name]))
            await worker.run(named(endpoint, "advance_in_processing"), values)
        assert [worker.commit() for worker in workers] == [Status.SUCCESS, Status.SUCCESS]


async def test_of_two_workers_on_the_same_row_the_later_is_aborted() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        workers = [Open(endpoint), Open(endpoint)]
        for worker in workers:
            values = advance_values(made.world.mark(), begin(made.rows["waits"]))
            await worker.run(named(endpoint, "advance_in_processing"), values)
        assert [worker.commit() for worker in workers] == [Status.SUCCESS, Status.ABORTED]


async def test_a_heartbeat_and_another_workers_lock_never_abort_each_other() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        heart, other = Open(endpoint), Open(endpoint)
        held = [{"shard_id": 0, "guid": "held"}]
        await heart.run(named(endpoint, "heartbeat"), {"$locks": held, "$now": made.world.at(9)})
        await other.run(
            named(endpoint, "acquire"),
            {
                "$shard_id": 1,
                "$seen_locked": False,
                "$seen_guid": "",
                "$seen_heartbeat_at": 0,
                "$guid": "other",
                "$worker": "w",
                "$now": made.world.at(9),
            },
        )
        assert [other.commit(), heart.commit()] == [Status.SUCCESS, Status.SUCCESS]


async def test_a_migration_that_read_its_shard_would_be_aborted_by_an_insert() -> None:
    """What the statements avoid, and what the endpoint would show if they did not."""
    async with running() as endpoint, scene(endpoint) as made:
        prefix = f'PRAGMA TablePathPrefix("{endpoint.engine.database.root}/clepsydra");'
        text = (
            f"{prefix} DECLARE $s AS Uint64; $all = (SELECT shard_id, created_at, action_id, action_guid "
            "FROM incoming_queue WHERE shard_id = $s); "
            "DELETE FROM incoming_queue ON SELECT shard_id, created_at, action_id, action_guid FROM $all;"
        )
        for shard_id, outcome in ((0, Status.ABORTED), (1, Status.SUCCESS)):
            scheduler, worker = Open(endpoint), Open(endpoint)
            await worker.run(text, {"$s": shard_id})
            put = made.world.create(f"new {shard_id}", shard_id=0)
            await scheduler.run(named(endpoint, "put"), put_values(put))
            assert [scheduler.commit(), worker.commit()] == [Status.SUCCESS, outcome]
