"""A fresh installation for each test, and a store on it."""

import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.store.postgres import PostgresStore
from tests.conformance.worlds import World
from tests.postgres.installations import Installation
from tests.postgres.shared import server_url
from tests.postgres.wire import Wire, open_wire

SHARDS = 4


@pytest.fixture
async def installation() -> AsyncIterator[Installation]:
    """An installation with four shards."""
    place = Installation()
    await PostgresStore.install(place.url, SHARDS)
    yield place
    await place.drop()


@pytest.fixture
async def operator(installation: Installation) -> AsyncIterator[asyncpg.Connection]:
    """A connection that is not the store's: an operator's, or another process's."""
    connection = await installation.connect()
    yield connection
    await connection.close()


@pytest.fixture
async def store(installation: Installation) -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(installation.url, SystemClock())
    yield opened
    await opened.close()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    async with open_wire(Wire(server_url())) as opened:
        yield opened


@pytest.fixture
async def wired(installation: Installation, wire: Wire) -> AsyncIterator[PostgresStore]:
    """A store on the same installation, through a wire that can be cut."""
    opened = await PostgresStore.open(installation.through(wire.url), SystemClock())
    yield opened
    await opened.close()


@pytest.fixture
async def world(store: PostgresStore) -> World:
    return World(store, store, await store.now(), Ids(random.Random(7)))
