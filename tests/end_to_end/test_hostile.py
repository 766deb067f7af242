"""Hostile callers for a moment, against a real scheduler: its memory stays bounded, and another caller is served.

`python -m benchmarks.hostile` does the same for a minute each, and also measures how long the other caller waits.
"""

from pathlib import Path

import pytest

from benchmarks.creates import single_per_s
from benchmarks.hostile.__main__ import GROWTH_MIB_MAX, measure
from benchmarks.installation import Installation


@pytest.mark.parametrize("kind", ["resets", "headers", "half-messages"])
def test_memory_is_bounded_and_other_callers_are_served(kind: str) -> None:
    taken = measure(kind, seconds=1.5, callers=1)

    assert taken["growth_mib"] < GROWTH_MIB_MAX
    assert taken["failed"] == 0
    assert taken["calls"] > 0


def test_a_busy_caller_is_not_refused(tmp_path: Path) -> None:
    """gRPC counts a call for a while after its answer: the limit of a connection has room for that."""
    with Installation(tmp_path) as installation:
        address = installation.scheduler()

        assert single_per_s(address, count=3_000, in_flight=64) > 0
