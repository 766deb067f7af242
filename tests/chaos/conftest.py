"""Worlds that end with their test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.chaos.caller import Caller
from tests.chaos.stores import SqliteChaos
from tests.chaos.world import World


class StartWorld(Protocol):
    async def __call__(self, **options: Any) -> World: ...


@pytest.fixture
async def start_world(tmp_path: Path) -> AsyncIterator[StartWorld]:
    """Start an installation on a file, and wait until it serves."""
    async with AsyncExitStack() as started:

        async def start(**options: Any) -> World:
            store = SqliteChaos(tmp_path)
            world = await started.enter_async_context(World(tmp_path, store, **options))
            await world.ready()
            return world

        yield start


@pytest.fixture
async def call_at() -> AsyncIterator[Callable[[str], Caller]]:
    """A client of the scheduler at an address."""
    async with AsyncExitStack() as started:

        def call(server: str) -> Caller:
            caller = Caller([server])
            started.push_async_callback(caller.close)
            return caller

        yield call
