"""A store for as long as a command needs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clepsydra.core.clock import SystemClock
from clepsydra.store.port import Store
from clepsydra.store.url import open_store


@asynccontextmanager
async def readable_store(url: str) -> AsyncIterator[Store]:
    """For commands that only read: the store may be read-only."""
    store = await open_store(url, SystemClock())
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def writable_store(url: str) -> AsyncIterator[Store]:
    """For servers and repairs: a read-only store is refused here, not at the first write."""
    async with readable_store(url) as store:
        await store.check_writable()
        yield store
