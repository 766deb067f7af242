"""Hostile callers for a moment, against a real scheduler: its memory stays bounded, and another caller is served.

`python -m benchmarks.hostile` does the same for a minute each, and also measures how long the other caller waits.
"""

import pytest

from benchmarks.hostile.__main__ import GROWTH_MIB_MAX, measure


@pytest.mark.parametrize("kind", ["resets", "headers", "half-messages"])
def test_memory_is_bounded_and_other_callers_are_served(kind: str) -> None:
    taken = measure(kind, seconds=1.5, callers=1)

    assert taken["growth_mib"] < GROWTH_MIB_MAX
    assert taken["failed"] == 0
    assert taken["calls"] > 0
