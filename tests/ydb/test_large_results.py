"""A server that sends no more than so many rows at once: everything is read all the same, and in one snapshot."""

import asyncio

import pytest

from clepsydra.store.errors import Unusable
from clepsydra.store.port import Row
from tests.conformance.worlds import EVERYTHING, begin, ids_of, whole_page
from tests.ydb.scenes import Scene, opened, running, scene
from tests.ydb_endpoint import Endpoint
from tests.ydb_endpoint.faults import Fault, Kind

ACTIONS = 60


async def crowded(made: Scene) -> list[Row]:
    """Half of the rows have come in, half wait to come due."""
    puts = [made.world.create(f"a{n:02}", made.world.at(n), shard_id=1) for n in range(ACTIONS)]
    await made.both(lambda store: store.put(puts))
    rows = [entry.row for entry in (await made.world.page(1)).incoming if entry.row.action_id.startswith("a")]
    moving, mark = rows[::2], made.world.mark()
    await made.both(lambda store: store.migrate(moving, mark))
    return rows[1::2]


def at_most(endpoint: Endpoint, rows: int) -> None:
    endpoint.faults.plan(Fault(Kind.TRUNCATE, rows=rows, times=100_000))


@pytest.mark.parametrize("rows", [1, 7, 29, 30, 31, 61])
async def test_every_read_is_whole(rows: int) -> None:
    async with running() as endpoint, scene(endpoint) as made:
        await crowded(made)
        names = [f"a{n:02}" for n in range(ACTIONS)]
        at_most(endpoint, rows)
        assert await whole_page(made.store, 1) == await whole_page(made.model, 1)
        assert await made.store.get(names) == await made.model.get(names)
        listed, model = await made.store.list_actions(None, EVERYTHING), await made.model.list_actions(None, EVERYTHING)
        assert sorted(listed) == sorted(model)
        assert await made.store.stale(1, None, 0, 40) == await made.model.stale(1, None, 0, 40)
        assert await made.store.audit(10) == await made.model.audit(10)


@pytest.mark.parametrize("limit", [5, 30, 45])
async def test_a_limit_is_kept_however_little_comes_at_once(limit: int) -> None:
    async with running() as endpoint, scene(endpoint) as made:
        await crowded(made)
        order = ids_of(await made.store.list_actions(None, EVERYTHING))
        at_most(endpoint, 4)
        assert ids_of(await made.store.list_actions(None, limit)) == order[:limit]
        page = await made.store.due(
            1, incoming_from_us=0, incoming_limit=limit, from_us=0, until_us=made.world.at(900), limit=limit
        )
        model = await made.model.due(
            1, incoming_from_us=0, incoming_limit=limit, from_us=0, until_us=made.world.at(900), limit=limit
        )
        assert page == model


async def test_a_page_in_pieces_is_one_snapshot() -> None:
    """Rows move from one queue to the other while a page is read piece by piece: each is seen once."""
    async with running() as endpoint, scene(endpoint) as made, opened(endpoint) as other:
        waiting = await crowded(made)
        names = sorted(f"a{n:02}" for n in range(ACTIONS))
        endpoint.faults.plan(Fault(Kind.TRUNCATE, "due", rows=6, times=100_000))

        async def move(row: Row) -> None:
            await other.advance([begin(row)], made.world.mark())

        moving = asyncio.gather(*(move(row) for row in waiting))
        while not moving.done():
            page = await whole_page(made.store, 1)
            seen = sorted(entry.row.action_id for entry in (*page.incoming, *page.due))
            assert [name for name in seen if name.startswith("a")] == names
        await moving


async def test_more_locks_than_rows_at_once() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        at_most(endpoint, 1)
        beat = await made.store.heartbeat([], made.world.now_us, made.world.at(100))
        assert beat.waiting == 2
        assert await made.store.locks() == await made.model.locks()


async def test_a_server_that_sends_nothing_of_something_is_not_asked_for_ever() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        at_most(endpoint, 0)
        with pytest.raises(Unusable, match="no rows"):
            await made.store.list_actions(None, 10)
