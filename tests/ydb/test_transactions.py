"""Which transactions abort each other, and which do not."""

from typing import Any

import pytest

from clepsydra.core.limits import CALL_RETRY_US
from clepsydra.store.port import Advance, Mark, Put, Queue
from clepsydra.store.ydb import parameters
from clepsydra.store.ydb.connection.sessions import texts_in
from tests.conformance.worlds import begin
from tests.ydb.sample_installation import SampleInstallation, running_endpoint, sample_installation
from tests.ydb_endpoint import Endpoint, Evaluation
from tests.ydb_endpoint.errors import Refused, Status

BOTH = pytest.mark.parametrize("evaluation", [Evaluation.ONCE, Evaluation.EACH_USE])


class OpenTransaction:
    """A transaction in which a text has run, and that is not committed yet."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._engine = endpoint.engine
        self._transaction = endpoint.engine.database.begin(is_serializable=True)

    async def run(self, text: str, values: dict[str, Any]) -> None:
        await self._engine.run(text, values, self._transaction)

    def commit(self) -> Status:
        try:
            self._transaction.commit()
        except Refused as refused:
            return refused.status
        return Status.SUCCESS


def text_of(endpoint: Endpoint, name: str) -> str:
    return texts_in(f"{endpoint.engine.database.root}/clepsydra")[name]


def rows(typed: parameters.Typed) -> list[dict[str, Any]]:
    return [row._asdict() for row in typed[0]]


def put_values(*puts: Put) -> dict[str, Any]:
    return {
        "$puts": rows(parameters.puts(list(enumerate(puts)))),
        "$oldest_created_at": min(put.created_at_us for put in puts),
        "$late_after": CALL_RETRY_US,
    }


def migrate_values(sample: SampleInstallation, *names: str) -> dict[str, Any]:
    return {
        "$rows": rows(parameters.incoming_keys([sample.rows[name] for name in names])),
        "$sync_guid": "sync",
        "$at": sample.world.tick(),
    }


def advance_values(mark: Mark, *advances: Advance) -> dict[str, Any]:
    return {
        "$advances": rows(parameters.advances(list(enumerate(advances)))),
        "$sync_guid": mark.sync_guid,
        "$at": mark.at_us,
    }


@BOTH
async def test_a_put_and_a_migration_in_one_shard_never_abort_each_other(evaluation: Evaluation) -> None:
    """Both have read and written everything before either commits, in the same shard, in both orders."""
    async with running_endpoint(evaluation=evaluation) as endpoint, sample_installation(endpoint) as sample:
        for commits_put_first in (True, False):
            put = sample.world.create(f"new {commits_put_first}", shard_id=0)
            name = "came in" if commits_put_first else "new True"
            if not commits_put_first:
                sample.rows[name] = (await sample.world.page(0)).incoming[-1].row
                assert sample.rows[name].queue is Queue.INCOMING
            scheduler, worker = OpenTransaction(endpoint), OpenTransaction(endpoint)
            await worker.run(text_of(endpoint, "migrate"), migrate_values(sample, name))
            await scheduler.run(text_of(endpoint, "put"), put_values(put))
            order = [scheduler, worker] if commits_put_first else [worker, scheduler]
            assert [each.commit() for each in order] == [Status.SUCCESS, Status.SUCCESS]
        await sample.check_invariant()


@BOTH
async def test_a_put_and_a_begin_in_one_shard_never_abort_each_other(evaluation: Evaluation) -> None:
    async with running_endpoint(evaluation=evaluation) as endpoint, sample_installation(endpoint) as sample:
        scheduler, worker = OpenTransaction(endpoint), OpenTransaction(endpoint)
        values = advance_values(sample.world.mark(), begin(sample.rows["waits"]))
        await worker.run(text_of(endpoint, "advance_in_processing"), values)
        await scheduler.run(text_of(endpoint, "put"), put_values(sample.world.create("new", shard_id=0)))
        assert [scheduler.commit(), worker.commit()] == [Status.SUCCESS, Status.SUCCESS]


async def test_two_workers_on_different_rows_of_a_shard_never_abort_each_other() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        workers = [OpenTransaction(endpoint), OpenTransaction(endpoint)]
        for worker, name in zip(workers, ("waits", "ends"), strict=True):
            values = advance_values(sample.world.mark(), begin(sample.rows[name]))
            await worker.run(text_of(endpoint, "advance_in_processing"), values)
        assert [worker.commit() for worker in workers] == [Status.SUCCESS, Status.SUCCESS]


async def test_if_two_workers_advance_the_same_row_the_later_is_aborted() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        workers = [OpenTransaction(endpoint), OpenTransaction(endpoint)]
        for worker in workers:
            values = advance_values(sample.world.mark(), begin(sample.rows["waits"]))
            await worker.run(text_of(endpoint, "advance_in_processing"), values)
        assert [worker.commit() for worker in workers] == [Status.SUCCESS, Status.ABORTED]


async def test_a_heartbeat_and_the_acquisition_of_another_lock_never_abort_each_other() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        heartbeat, acquisition = OpenTransaction(endpoint), OpenTransaction(endpoint)
        held = [{"shard_id": 0, "guid": "held"}]
        values = {"$locks": held, "$now": sample.world.at(9), "$fresh_until": sample.world.at(9)}
        await heartbeat.run(text_of(endpoint, "heartbeat"), values)
        await acquisition.run(
            text_of(endpoint, "acquire"),
            {
                "$shard_id": 1,
                "$seen_locked": False,
                "$seen_guid": "",
                "$seen_heartbeat_at": 0,
                "$guid": "other",
                "$worker": "w",
                "$now": sample.world.at(9),
            },
        )
        assert [acquisition.commit(), heartbeat.commit()] == [Status.SUCCESS, Status.SUCCESS]


async def test_a_migration_that_read_its_whole_shard_would_be_aborted_by_a_put() -> None:
    """The store's texts avoid this. If they did not, the endpoint would show it."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        prefix = f'PRAGMA TablePathPrefix("{endpoint.engine.database.root}/clepsydra");'
        text = (
            f"{prefix} DECLARE $s AS Uint64; $all = (SELECT shard_id, created_at, action_id, action_guid "
            "FROM incoming_queue WHERE shard_id = $s); "
            "DELETE FROM incoming_queue ON SELECT shard_id, created_at, action_id, action_guid FROM $all;"
        )
        for shard_id, outcome in ((0, Status.ABORTED), (1, Status.SUCCESS)):
            scheduler, worker = OpenTransaction(endpoint), OpenTransaction(endpoint)
            await worker.run(text, {"$s": shard_id})
            put = sample.world.create(f"new {shard_id}", shard_id=0)
            await scheduler.run(text_of(endpoint, "put"), put_values(put))
            assert [scheduler.commit(), worker.commit()] == [Status.SUCCESS, outcome]
