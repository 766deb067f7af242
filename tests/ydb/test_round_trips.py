"""How many requests each call makes, once the store has its sessions."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clepsydra.store.port import Lock
from clepsydra.store.ydb import YdbStore
from tests.ydb.port_calls import READS, WRITES, Make
from tests.ydb.sample_installation import open_store, running_endpoint, sample_installation
from tests.ydb_endpoint import Endpoint

# One round trip each, except for calls that read a range and write, which are two texts: acquire reads and then writes;
# a heartbeat does both at the same time. An audit holds a snapshot open for several reads, and ends it.
REQUESTS: dict[str, list[str]] = {
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
    "locks": ["load_incoming", "load_processing", "locks", "CommitTransaction"],
    "stats": ["stats", "states", "load_incoming", "load_processing", "CommitTransaction"],
    "now": ["now"],
    "audit's actions": ["audit_incoming", "audit_processing", "audit_actions", "CommitTransaction"],
}


async def requests_of(endpoint: Endpoint, call: Callable[[], Awaitable[Any]]) -> list[str]:
    endpoint.engine.requests.clear()
    await call()
    return [request.call or request.rpc for request in endpoint.engine.requests]


async def warm_up(store: YdbStore) -> None:
    """A heartbeat sends two requests at once, so there are two sessions afterwards."""
    await store.heartbeat([Lock(1, "never")], 0, 0)


@pytest.mark.parametrize("name", REQUESTS)
async def test_the_requests_of_a_call_are_counted(name: str) -> None:
    make: Make = (WRITES | READS)[name][0]
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        await warm_up(sample.store)
        send = make(sample)
        found = await requests_of(endpoint, lambda: send(sample.store))
        assert sorted(found) == sorted(REQUESTS[name])


@pytest.mark.parametrize("name", WRITES)
async def test_a_write_asks_for_a_serializable_transaction_and_commits_it_in_the_same_request(name: str) -> None:
    make, text = WRITES[name]
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        endpoint.engine.requests.clear()
        await make(sample)(sample.store)
        modes = {request.mode for request in endpoint.engine.requests if request.call == text}
        assert modes == {"serializable_read_write, committed"}


@pytest.mark.parametrize("name", READS)
async def test_a_read_asks_for_a_snapshot(name: str) -> None:
    make, text = READS[name]
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        endpoint.engine.requests.clear()
        await make(sample)(sample.store)
        [mode, *_] = [request.mode for request in endpoint.engine.requests if request.call == text]
        assert mode.startswith("snapshot_read_only") or (text.startswith("audit") and mode == "open")


async def test_only_ddl_names_no_transaction() -> None:
    async with running_endpoint() as endpoint, open_store(endpoint):
        texts = [request for request in endpoint.engine.requests if request.rpc == "ExecuteQuery"]
        assert {request.call for request in texts if not request.mode} == {"install"}


async def test_an_empty_batch_makes_no_request() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        store, mark = sample.store, sample.world.mark()
        assert await requests_of(endpoint, lambda: store.put([])) == []
        assert await requests_of(endpoint, lambda: store.advance([], mark)) == []
        assert await requests_of(endpoint, lambda: store.migrate([], mark)) == []
        assert await requests_of(endpoint, lambda: store.get([])) == []
        assert await requests_of(endpoint, lambda: store.drop([])) == []
        assert await requests_of(endpoint, lambda: store.release([], 0)) == []


async def test_a_batch_makes_one_request() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        await warm_up(sample.store)
        puts = [sample.world.create(f"a{n}", shard_id=n % 2) for n in range(500)]
        assert await requests_of(endpoint, lambda: sample.store.put(puts)) == ["put"]
        names = [put.action.action_id for put in puts]
        assert await requests_of(endpoint, lambda: sample.store.get(names)) == ["get"]


async def test_sessions_are_reused() -> None:
    async with running_endpoint() as endpoint, sample_installation(endpoint) as sample:
        for _ in range(50):
            await sample.store.now()
        sessions = len(endpoint.engine.sessions)
        for _ in range(50):
            await sample.store.now()
        assert len(endpoint.engine.sessions) == sessions <= 3
