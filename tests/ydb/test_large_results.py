"""The server truncates results: everything is still read, and in one snapshot."""

import asyncio

import pytest

from clepsydra.store.errors import Unusable
from clepsydra.store.port import Row
from tests.conformance.worlds import EVERYTHING, begin, ids_of, whole_page
from tests.ydb.sample_installation import SampleInstallation, open_store, running_endpoint, sample_installation
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.faults import Fault, Kind

ACTIONS = 60


async def add_rows(sample: SampleInstallation) -> list[Row]:
    """Put rows into shard 1, and move half of them to processing_queue. Returns the other half."""
    puts = [sample.world.create(f"a{n:02}", sample.world.at(n), shard_id=1) for n in range(ACTIONS)]
    await sample.call_both(lambda store: store.put(puts))
    rows = [entry.row for entry in (await sample.world.page(1)).incoming if entry.row.action_id.startswith("a")]
    moving, mark = rows[::2], sample.world.mark()
    await sample.call_both(lambda store: store.migrate(moving, mark))
    return rows[1::2]


def truncate(endpoint: Endpoint, rows: int) -> None:
    endpoint.faults.plan(Fault(Kind.TRUNCATE, rows=rows, times=100_000))


@pytest.mark.parametrize("rows", [1, 7, 29, 30, 31, 61])
async def test_every_read_is_complete(rows: int) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        await add_rows(sample)
        names = [f"a{n:02}" for n in range(ACTIONS)]
        truncate(endpoint, rows)
        assert await whole_page(sample.store, 1) == await whole_page(sample.model, 1)
        assert await sample.store.get(names) == await sample.model.get(names)
        listed, model = (
            await sample.store.list_actions(None, EVERYTHING),
            await sample.model.list_actions(None, EVERYTHING),
        )
        assert sorted(listed) == sorted(model)
        assert await sample.store.stale(1, None, 0, 40) == await sample.model.stale(1, None, 0, 40)
        assert await sample.store.audit(10) == await sample.model.audit(10)


@pytest.mark.parametrize("limit", [5, 30, 45])
async def test_the_limit_holds_across_pages(limit: int) -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        await add_rows(sample)
        order = ids_of(await sample.store.list_actions(None, EVERYTHING))
        truncate(endpoint, 4)
        assert ids_of(await sample.store.list_actions(None, limit)) == order[:limit]
        page = await sample.store.due(
            1, incoming_from_us=0, incoming_limit=limit, from_us=0, until_us=sample.world.at(900), limit=limit
        )
        model = await sample.model.due(
            1, incoming_from_us=0, incoming_limit=limit, from_us=0, until_us=sample.world.at(900), limit=limit
        )
        assert page == model


async def test_all_pages_of_a_read_are_in_one_snapshot() -> None:
    """Rows move from one queue to the other while pages are read: each row is seen once."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample, open_store(endpoint) as other:
        waiting = await add_rows(sample)
        names = sorted(f"a{n:02}" for n in range(ACTIONS))
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "due", rows=6, times=100_000))

        async def move(row: Row) -> None:
            await other.advance([begin(row)], sample.world.mark())

        moving = asyncio.gather(*(move(row) for row in waiting))
        while not moving.done():
            page = await whole_page(sample.store, 1)
            seen = sorted(entry.row.action_id for entry in (*page.incoming, *page.due))
            assert [name for name in seen if name.startswith("a")] == names
        await moving


async def test_locks_are_read_in_pages() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        truncate(endpoint, 1)
        beat = await sample.store.heartbeat([], sample.world.now_us, sample.world.at(100))
        assert beat.waiting == 2
        assert await sample.store.locks() == await sample.model.locks()


async def test_a_result_truncated_to_no_rows_is_an_error_and_no_endless_loop() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        truncate(endpoint, 0)
        with pytest.raises(Unusable, match="no rows"):
            await sample.store.list_actions(None, 10)
