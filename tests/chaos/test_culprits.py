"""A short form of `python -m tests.chaos.culprits`: no innocent action is given up because of another."""

from pathlib import Path

from tests.chaos.culprits import Size, run
from tests.chaos.sizes import IS_LONG
from tests.chaos.stores import SqliteChaos

# Short lives, so that a death is noticed soon.
_SHORT = ("worker.lease_ms=2000", "worker.grace_ms=800", "worker.lock_life_ms=1500", "worker.heartbeat_ms=300")


async def test_culprits_are_parked_and_every_innocent_action_succeeds(tmp_path: Path) -> None:
    size = Size(innocent=150, workers=3, spread_s=4, within_s=180, blocked_ms=4_000, settings=_SHORT)
    if IS_LONG:
        size = Size(innocent=5000, workers=3, spread_s=60, within_s=540, blocked_ms=60_000)
    verdict = await run(tmp_path, SqliteChaos(tmp_path), size)
    assert verdict.violations == []
    assert verdict.states["PAUSED"] == 2
