"""The thread of a connection: what gathers is run together, and what can wait lets the others go first."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import apsw
import pytest

from clepsydra.store.sqlite.execution import Ended, Operation, ThreadLane


class Recorded:
    """A lane whose groups are written down. The first operation holds the thread until the others have gathered."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.lane = ThreadLane(apsw.Connection(":memory:"), self._run, "recorded", 3)
        self._holds = threading.Event()
        self._gathered = threading.Event()

    async def run(self, name: str) -> str:
        return await self.lane.run(lambda _: name, can_wait=name.islower())

    def _hold(self, _connection: apsw.Connection) -> str:
        self._holds.set()
        self._gathered.wait()
        return "first"

    def _run(self, connection: apsw.Connection, operations: Sequence[Operation[Any]]) -> list[Ended]:
        self.groups.append([str(operation(connection)) for operation in operations])
        return [(name, None) for name in self.groups[-1]]

    async def groups_of(self, names: str) -> list[str]:
        """Run operations of these names, one letter each; small letters can wait."""
        first = asyncio.ensure_future(self.lane.run(self._hold))
        await asyncio.to_thread(self._holds.wait)
        asked = [asyncio.ensure_future(self.run(name)) for name in names]
        await asyncio.sleep(0)
        self._gathered.set()
        assert await asyncio.gather(*asked) == list(names)
        assert await first == "first"
        self.lane.close()
        return ["".join(group) for group in self.groups[1:]]


@pytest.mark.parametrize(
    ("asked", "groups"),
    [
        ("AB", ["AB"]),
        ("ABCDE", ["ABC", "DE"]),
        ("ab", ["a", "b"]),
        # One that can wait is not kept waiting for ever: it has every other turn.
        ("aABCDE", ["a", "ABC", "DE"]),
        ("ABCDabE", ["a", "ABC", "b", "DE"]),
        ("aAb", ["a", "A", "b"]),
    ],
)
async def test_what_gathered_is_run_in_groups_and_what_can_wait_by_itself(asked: str, groups: list[str]) -> None:
    # The first group of all was urgent, so the turn is of one that can wait.
    assert await Recorded().groups_of(asked) == groups


async def test_what_was_accepted_is_done_before_a_lane_closes() -> None:
    recorded = Recorded()
    asked = [asyncio.ensure_future(recorded.run(name)) for name in "aAbB"]
    await asyncio.sleep(0)
    recorded.lane.close()
    assert await asyncio.gather(*asked) == list("aAbB")
    with pytest.raises(RuntimeError, match="closed"):
        await recorded.run("late")
