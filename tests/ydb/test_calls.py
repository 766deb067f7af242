"""Every call on the server that is tested: what it returns, how many requests it makes, and how long it takes.

On the endpoint this repeats what other tests show. On a real server it is what the report tells.
"""

import os
import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from clepsydra.core.ids import Ids
from clepsydra.store.ydb import YdbStore
from clepsydra.store.ydb.connection.driver import connect
from clepsydra.store.ydb.connection.sessions import Parameters, Results, Sessions, Snapshot
from clepsydra.store.ydb.retry import Retry
from clepsydra.store.ydb.url import Location, parse_url
from tests.ydb.installations import REAL_SERVER, Installation, version_at
from tests.ydb.port_calls import READS, WRITES
from tests.ydb.sample_installation import SHARDS, SampleInstallation
from tests.ydb.test_round_trips import REQUESTS, warm_up

ROUNDS = 4 if REAL_SERVER else 2
Record = Callable[[str, object], None]


class CountedSessions(Sessions):
    """Sessions that remember which requests were sent."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.requests: list[str] = []

    async def write(self, name: str, parameters: Parameters) -> Results:
        self.requests.append(name)
        return await super().write(name, parameters)

    async def read(self, name: str, parameters: Parameters, timeout_s: float | None = None) -> Results:
        self.requests.append(name)
        return await super().read(name, parameters, timeout_s)

    @asynccontextmanager
    async def snapshot(self, timeout_s: float | None = None) -> AsyncIterator[Snapshot]:
        async with super().snapshot(timeout_s) as snapshot:
            yield CountedSnapshot(snapshot, self.requests)
        self.requests.append("CommitTransaction")


class CountedSnapshot(Snapshot):
    def __init__(self, snapshot: Snapshot, requests: list[str]) -> None:
        self._snapshot = snapshot
        self._requests = requests

    async def read(self, name: str, parameters: Parameters) -> Results:
        self._requests.append(name)
        return await self._snapshot.read(name, parameters)


@asynccontextmanager
async def counted_store(location: Location) -> AsyncIterator[tuple[YdbStore, CountedSessions]]:
    driver = await connect(location, os.environ)
    sessions = CountedSessions(driver, location.path, location.limits)
    store = YdbStore(location, driver, sessions, Retry(location, Ids(random.Random(1))), SHARDS)
    try:
        yield store, sessions
    finally:
        await store.close()


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_call_makes_its_requests_and_returns_what_the_specification_does(
    name: str, record_property: Record
) -> None:
    make, _ = (WRITES | READS)[name]
    times_ms: list[float] = []
    for _ in range(ROUNDS):
        installation = Installation()
        try:
            await installation.install(SHARDS)
            async with counted_store(parse_url(installation.url)) as (store, sessions):
                sample = SampleInstallation(store, await store.now())
                await sample.build()
                await warm_up(store)
                send = make(sample)
                sessions.requests.clear()
                result, took_ms = await _timed(lambda send=send, store=store: send(store))  # type: ignore[misc]
                times_ms.append(took_ms)
                assert sorted(sessions.requests) == sorted(REQUESTS[name])
                assert result == await send(sample.model)
                await sample.check_invariant()
        finally:
            await installation.close()
    first_ms, *others_ms = times_ms
    record_property(
        "call",
        {
            "name": name,
            "requests": REQUESTS[name],
            "first_ms": first_ms,
            "median_ms": statistics.median(others_ms),
            "longest_ms": max(others_ms),
        },
    )


async def _timed(call: Callable[[], Awaitable[Any]]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = await call()
    return result, (time.perf_counter() - started) * 1000


async def test_the_server_says_its_version(record_property: Record) -> None:
    installation = Installation()
    try:
        await installation.install(SHARDS)
        record_property("server_version", await version_at(installation.url))
    finally:
        await installation.close()
