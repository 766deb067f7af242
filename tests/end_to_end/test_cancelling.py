"""The short form of `python -m benchmarks.cancel`, which also holds cancellations to their two seconds."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from benchmarks.cancel import CHANGES, measure
from tests.postgres.installations import Installation


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[str | None]:
    """The URL of a fresh store; None for SQLite."""
    if request.param == "sqlite":
        yield None
        return
    installation = Installation()
    yield installation.url
    await installation.drop()


def test_every_change_cancels_what_runs_in_another_process(store: str | None, tmp_path: Path) -> None:
    found = measure(tmp_path, store, repetitions=3)
    assert [each.kind for each in found] == [*CHANGES, "race"]
    assert [sentence for each in found for sentence in each.wrong] == []
    assert all(len(each.took_us) == 3 for each in found[:-1])
