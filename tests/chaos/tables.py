"""What the tables say of every action, read through the port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from clepsydra.core.clock import SystemClock
from clepsydra.scheduler.codec import decode
from clepsydra.store.port import Store
from clepsydra.store.url import open_store
from clepsydra.v1.action_pb2 import ScheduledAction, State

_PAGE = 2_000


class Entry(NamedTuple):
    """An action as its table has it, tombstones included."""

    guid: str
    state: str
    succeeded: int
    failed: int
    interrupted: int
    runs: int
    # Of the last attempt that has ended.
    last_attempt_id: str
    last_number: int


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await open_store(url, SystemClock())
    try:
        yield store
    finally:
        await store.close()


async def read_entries(store: Store) -> dict[str, Entry]:
    """Every action by its id."""
    entries: dict[str, Entry] = {}
    after_id: str | None = None
    while page := await store.list_actions(after_id, _PAGE):
        entries.update({action.action_id: entry_of(decode(action).action) for action in page})
        after_id = page[-1].action_id
    return entries


def entry_of(action: ScheduledAction) -> Entry:
    status = action.status
    counters = status.counters
    return Entry(
        guid=action.meta.guid,
        state=State.Name(status.state),
        succeeded=counters.succeeded_attempts,
        failed=counters.failed_attempts,
        interrupted=counters.interrupted_attempts,
        runs=counters.runs,
        last_attempt_id=status.last_attempt.id,
        last_number=status.last_attempt.number,
    )
