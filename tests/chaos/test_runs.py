"""Short runs of chaos. `python -m tests.chaos` makes long ones; the verdict is the same.

The counts of events prove that each kind of fault really happened, and that it hurt.
"""

from pathlib import Path

from tests.chaos.disk import make_disk
from tests.chaos.postgres import PostgresChaos
from tests.chaos.run import Plan, Summary, run
from tests.chaos.stores import SqliteChaos

# In the order of the nemesis: each is in every run that has all faults.
_ON_PROCESSES = {"kills of a scheduler", "kills of a worker", "kills of a client", "pauses", "polite stops"}
_ON_WIRES = {"wires refusing", "wires silent", "wires losing answers", "wires answering late"}


def assert_all_is_well(summary: Summary) -> None:
    assert summary.violations == [], str(summary)
    assert summary.events["audits"] > 1, "the audit was asked after kills, and in the end"
    assert summary.calls["acknowledged actions"] >= summary.plan.actions
    # Where a kill strikes is chance: in a run as short as these it may find no attempt in flight.
    assert summary.calls["tried again"] + summary.work["attempts interrupted"] > 0, "the faults were felt"


async def test_kill_9_of_any_process_at_any_time(tmp_path: Path) -> None:
    """A scheduler and two workers on one file: each is killed several times while actions come due."""
    plan = Plan(seed=3, actions=1_000, kills=7, kills_only=True)
    summary = await run(plan, tmp_path, SqliteChaos(tmp_path), print)
    assert_all_is_well(summary)
    assert summary.events["kills"] >= plan.kills


async def test_every_fault_on_one_file(tmp_path: Path) -> None:
    plan = Plan(seed=4, actions=1_000, kills=8, schedulers=2)
    summary = await run(plan, tmp_path, SqliteChaos(tmp_path, make_disk), print)
    assert_all_is_well(summary)
    assert summary.events.keys() >= _ON_PROCESSES | _ON_WIRES | {"full disks"}


async def test_every_fault_on_postgres(tmp_path: Path) -> None:
    plan = Plan(seed=5, actions=1_000, kills=8, schedulers=2)
    store = PostgresChaos(tmp_path, disk_can_fill=False)
    summary = await run(plan, tmp_path, store, print)
    assert_all_is_well(summary)
    assert summary.events.keys() >= _ON_PROCESSES | _ON_WIRES | {"database crashes"}
