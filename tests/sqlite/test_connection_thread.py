"""The thread of a connection: waiting operations form a group, and those that can wait go after the others."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import apsw
import pytest

from clepsydra.store.sqlite.connection.thread import ConnectionThread, Operation, Settled


class Recorded:
    """A thread that records its groups. The first operation holds the thread until the others are waiting."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.thread = ConnectionThread(apsw.Connection(":memory:"), self._run, "recorded", 3)
        self._holds = threading.Event()
        self._all_wait = threading.Event()

    async def run(self, name: str) -> str:
        return await self.thread.run(lambda _: name, can_wait=name.islower())

    def _hold(self, _connection: apsw.Connection) -> str:
        self._holds.set()
        self._all_wait.wait()
        return "first"

    def _run(self, connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Settled]:
        self.groups.append([str(operation(connection)) for operation in operations])
        return [(name, None) for name in self.groups[-1]]

    async def groups_of(self, names: str) -> list[str]:
        """Run operations of these names, one letter each; small letters can wait."""
        first = asyncio.ensure_future(self.thread.run(self._hold))
        await asyncio.to_thread(self._holds.wait)
        asked = [asyncio.ensure_future(self.run(name)) for name in names]
        await asyncio.sleep(0)
        self._all_wait.set()
        assert await asyncio.gather(*asked) == list(names)
        assert await first == "first"
        self.thread.close()
        return ["".join(group) for group in self.groups[1:]]


@pytest.mark.parametrize(
    ("asked", "groups"),
    [
        ("AB", ["AB"]),
        ("ABCDE", ["ABC", "DE"]),
        ("ab", ["a", "b"]),
        # One that can wait does not wait for ever: every second group is one of these.
        ("aABCDE", ["a", "ABC", "DE"]),
        ("ABCDabE", ["a", "ABC", "b", "DE"]),
        ("aAb", ["a", "A", "b"]),
    ],
)
async def test_waiting_operations_form_groups_and_one_that_can_wait_is_a_group_of_its_own(
    asked: str, groups: list[str]
) -> None:
    # The first group of all was urgent, so one that can wait is next.
    assert await Recorded().groups_of(asked) == groups


async def test_what_was_accepted_is_done_before_the_thread_ends() -> None:
    recorded = Recorded()
    asked = [asyncio.ensure_future(recorded.run(name)) for name in "aAbB"]
    await asyncio.sleep(0)
    recorded.thread.close()
    assert await asyncio.gather(*asked) == list("aAbB")
    with pytest.raises(RuntimeError, match="closed"):
        await recorded.run("late")
