"""Large results come in parts, and completely. If a part is missing, that is noticed."""

import asyncio

import pytest

from clepsydra.store.errors import Unavailable
from clepsydra.store.port import Row
from tests.conformance.worlds import EVERYTHING, begin, whole_page
from tests.ydb.port_calls import READS
from tests.ydb.sample_installation import (
    SHORT_RETRY,
    SampleInstallation,
    open_store,
    running_endpoint,
    sample_installation,
)
from tests.ydb_endpoint.faults import Fault, Kind

ACTIONS = 1400


async def add_rows(sample: SampleInstallation, actions: int) -> list[Row]:
    """Put rows into shard 1, and move half of them to processing_queue. Returns the other half."""
    puts = [sample.world.create(f"a{n:04}", sample.world.at(n), shard_id=1) for n in range(actions)]
    await sample.call_both(lambda store: store.put(puts))
    rows = [entry.row for entry in (await sample.world.page(1)).incoming if entry.row.action_id.startswith("a")]
    moving, mark = rows[::2], sample.world.mark()
    await sample.call_both(lambda store: store.migrate(moving, mark))
    return rows[1::2]


async def test_every_read_is_complete() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        await add_rows(sample, ACTIONS)
        names = [f"a{n:04}" for n in range(ACTIONS)]
        assert await whole_page(sample.store, 1) == await whole_page(sample.model, 1)
        assert await sample.store.get(names) == await sample.model.get(names)
        listed = await sample.store.list_actions(None, EVERYTHING)
        assert sorted(listed) == sorted(await sample.model.list_actions(None, EVERYTHING))
        assert await sample.store.stale(1, None, 0, 40) == await sample.model.stale(1, None, 0, 40)
        assert await sample.store.audit(10) == await sample.model.audit(10)


async def test_a_read_of_both_queues_is_one_snapshot() -> None:
    """Rows move from one queue to the other while both are read: each row is seen once."""
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample, open_store(endpoint) as other:
        waiting = await add_rows(sample, 60)
        names = sorted(f"a{n:04}" for n in range(60))

        async def move(row: Row) -> None:
            await other.advance([begin(row)], sample.world.mark())

        moving = asyncio.gather(*(move(row) for row in waiting))
        while not moving.done():
            page = await whole_page(sample.store, 1)
            seen = sorted(entry.row.action_id for entry in (*page.incoming, *page.due))
            assert [name for name in seen if name.startswith("a")] == names
        await moving


@pytest.mark.parametrize("call", [name for name in READS if name not in ("now", "acquire's read", "stats")])
async def test_a_result_of_which_a_part_is_missing_is_an_error(call: str) -> None:
    make, text = READS[call]
    async with running_endpoint() as endpoint, sample_installation(endpoint, SHORT_RETRY) as sample:
        send = make(sample)
        endpoint.faults.plan(Fault(Kind.TRUNCATE, text, rows=0, times=1000))
        with pytest.raises(Unavailable, match="only a part of a result"):
            await send(sample.store)
