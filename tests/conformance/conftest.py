"""Every test of this folder runs once for each store, on an installation of its own."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clepsydra.core.ids import Ids
from tests.conformance.backends import BACKENDS, Backend, TestClock
from tests.conformance.worlds import World


@pytest.fixture(params=list(BACKENDS))
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    made = BACKENDS[request.param](tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def world(backend: Backend) -> World:
    store = await backend.open(TestClock())
    return World(store, await backend.reopen(), await store.now(), Ids(random.Random(7)))
