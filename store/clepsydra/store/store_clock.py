"""How a process reads the clock of its store."""

from clepsydra.core.clock import DisciplinedClock
from clepsydra.store.port import Store


async def read_store_clock(store: Store, clock: DisciplinedClock) -> None:
    """Ask the store for its time. The moments of question and answer bound the clock's error."""
    asked_us = clock.monotonic_us()
    clock.anchor(await store.now(), asked_us)
