"""What each call costs in requests, once the store has its sessions."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clepsydra.store.port import Lock
from clepsydra.store.ydb import YdbStore
from tests.ydb.scenes import READS, WRITES, Make, running, scene
from tests.ydb_endpoint import Endpoint

# One round trip each, except where a range and a write are wanted, which are two texts: acquire looks and then takes;
# a heartbeat writes and looks at the same time. An audit holds a snapshot for several reads, and ends it.
COSTS: dict[str, list[str]] = {
    "create": ["put"],
    "change": ["put"],
    "relabel": ["put"],
    "begin": ["advance_in_processing"],
    "begin from incoming": ["advance_from_incoming"],
    "finish": ["advance_in_processing"],
    "remove": ["advance_in_processing"],
    "advance stale": ["advance_in_processing"],
    "migrate": ["migrate"],
    "acquire": ["free_locks", "acquire"],
    "heartbeat": ["free_locks", "heartbeat"],
    "release": ["release"],
    "get": ["get"],
    "list": ["list_actions"],
    "due": ["due"],
    "soon": ["soon"],
    "stale": ["stale"],
    "locks": ["locks"],
    "stats": ["stats"],
    "now": ["now"],
    "audit's actions": ["audit_incoming", "audit_processing", "audit_actions", "CommitTransaction"],
}


async def cost(endpoint: Endpoint, call: Callable[[], Awaitable[Any]]) -> list[str]:
    endpoint.engine.requests.clear()
    await call()
    return [request.call or request.rpc for request in endpoint.engine.requests]


async def warm_up(store: YdbStore) -> None:
    """A heartbeat does two things at once, so that there are two sessions from then on."""
    await store.heartbeat([Lock(1, "never")], 0, 0)


@pytest.mark.parametrize("name", COSTS)
async def test_the_requests_of_a_call_are_counted(name: str) -> None:
    make: Make = (WRITES | READS)[name][0]
    async with running() as endpoint, scene(endpoint) as made:
        await warm_up(made.store)
        send = make(made)
        found = await cost(endpoint, lambda: send(made.store))
        assert sorted(found) == sorted(COSTS[name])


async def test_nothing_to_do_costs_nothing() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        store, mark = made.store, made.world.mark()
        assert await cost(endpoint, lambda: store.put([])) == []
        assert await cost(endpoint, lambda: store.advance([], mark)) == []
        assert await cost(endpoint, lambda: store.migrate([], mark)) == []
        assert await cost(endpoint, lambda: store.get([])) == []
        assert await cost(endpoint, lambda: store.release([], 0)) == []


async def test_a_batch_costs_what_a_single_change_costs() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        await warm_up(made.store)
        puts = [made.world.create(f"a{n}", shard_id=n % 2) for n in range(500)]
        assert await cost(endpoint, lambda: made.store.put(puts)) == ["put"]
        names = [put.action.action_id for put in puts]
        assert await cost(endpoint, lambda: made.store.get(names)) == ["get"]


async def test_sessions_are_made_once_and_kept() -> None:
    async with running() as endpoint, scene(endpoint) as made:
        for _ in range(50):
            await made.store.now()
        sessions = len(endpoint.engine.sessions)
        for _ in range(50):
            await made.store.now()
        assert len(endpoint.engine.sessions) == sessions <= 3
