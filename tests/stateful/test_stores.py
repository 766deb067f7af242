"""The short form: always the same sequences. `STATEFUL=long` makes many, and new ones each time."""

import asyncio
import os
from collections.abc import Sequence

import pytest

from clepsydra.core.clock import Clock
from clepsydra.store.memory import MemoryStore
from clepsydra.store.port import Put, PutResult, Store
from tests.conformance.backends import BACKENDS, SHARDS, MemoryBackend
from tests.stateful.campaign import LONG, SHORT, explore
from tests.stateful.machine import KINDS

STORES = [name for name in BACKENDS if name != "memory"]


@pytest.mark.parametrize("name", STORES)
def test_every_store_does_what_the_specification_would_in_some_order(name: str) -> None:
    made = explore(BACKENDS[name], LONG if os.environ.get("STATEFUL") == "long" else SHORT)
    assert made["other orders"] > 0, "calls that were in flight at once took effect in another order than sent"
    assert set(made) >= set(KINDS)


class Forgetful(MemoryStore):
    """Compares nothing before it puts."""

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        return await super().put([put._replace(seen=self.actions.get(put.action.action_id)) for put in puts])


class Hasty(MemoryStore):
    """Compares, lets others in, and then puts: wrong only where calls are in flight at once."""

    async def put(self, puts: Sequence[Put]) -> list[PutResult]:
        fits = [put.seen == self.actions.get(put.action.action_id) for put in puts]
        await asyncio.sleep(0)
        return await super().put(
            [
                put._replace(seen=self.actions.get(put.action.action_id)) if fit else put
                for put, fit in zip(puts, fits, strict=True)
            ]
        )


@pytest.mark.parametrize("broken", [Forgetful, Hasty])
def test_a_store_that_breaks_its_word_is_found_out(broken: type[MemoryStore]) -> None:
    class Broken(MemoryBackend):
        async def open(self, clock: Clock) -> Store:
            self._store = broken(SHARDS, clock)
            return self._store

    with pytest.raises(AssertionError, match="no order of these"):
        explore(Broken, SHORT._replace(examples=50))


def test_every_call_of_the_port_comes_up() -> None:
    port = {name for name in vars(Store) if not name.startswith("_")} - {"shards", "close"}
    assert port | {"again"} == set(KINDS)
