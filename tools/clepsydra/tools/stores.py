"""A store for as long as a command needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clepsydra.core.clock import SystemClock
from clepsydra.store.port import Store
from clepsydra.store.url import open_store


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """For commands that look: a store that is read-only will do."""
    store = await open_store(url, SystemClock())
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def opened_for_writing(url: str) -> AsyncIterator[Store]:
    """For servers: a store that cannot be written to is refused here, and not at the first call."""
    async with opened(url) as store:
        await store.check_writable()
        yield store
