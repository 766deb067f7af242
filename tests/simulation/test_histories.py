"""The same seed gives the same history: in every process, under every hash seed, on every machine."""

import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.campaign import plan_of
from tests.simulation.golden import committed
from tests.simulation.run import run_plan

_ROOT = Path(__file__).parents[2]


def _told_under(hash_seed: int) -> list[str]:
    command = [sys.executable, "-m", "tests.simulation.golden", "--print"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    told = subprocess.run(command, cwd=_ROOT, env=environment, check=True, capture_output=True, text=True)
    return told.stdout.splitlines()


def test_other_processes_under_other_hash_seeds_come_to_the_histories_that_were_committed() -> None:
    told = _told_under(1)
    assert told == _told_under(4294967295)
    assert told == (committed() or told), (
        "if workers or schedulers do other things now: python -m tests.simulation.golden"
    )


def test_a_run_leaves_nothing_behind_that_the_next_one_feels() -> None:
    first = run_plan(plan_of(8))
    run_plan(plan_of(10))
    again = run_plan(plan_of(8))
    assert list(again.history.lines()) == list(first.history.lines())
    assert (again.steps, again.marks, again.ends) == (first.steps, first.marks, first.ends)


def test_another_seed_gives_another_history() -> None:
    assert run_plan(plan_of(8)).digest != run_plan(plan_of(9)).digest
