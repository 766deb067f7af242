"""The same seed gives the same history: in every process, and under every hash seed."""

import os
import subprocess
import sys
from pathlib import Path

from tests.simulation.campaign import plan_of
from tests.simulation.run import run_plan

_ROOT = Path(__file__).parents[2]

# Three on memory, one on SQLite; with kills, stalls, wrong clocks, broken locks, outages and calls in trouble.
_SEEDS = "8 10 14 67"


def _digests_under(hash_seed: int) -> list[str]:
    """A line for each seed, from a fresh process: how many steps the run took, and the digest of its history."""
    command = [sys.executable, "-m", "tests.simulation.digests", *_SEEDS.split()]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    printed = subprocess.run(command, cwd=_ROOT, env=environment, check=True, capture_output=True, text=True)
    return printed.stdout.splitlines()


def test_two_fresh_processes_under_other_hash_seeds_come_to_the_same_histories() -> None:
    first = _digests_under(1)
    assert len(set(first)) == len(_SEEDS.split())
    assert first == _digests_under(4294967295)


def test_a_run_leaves_nothing_behind_that_the_next_one_feels() -> None:
    first = run_plan(plan_of(8))
    run_plan(plan_of(10))
    again = run_plan(plan_of(8))
    assert list(again.history.lines()) == list(first.history.lines())
    assert (again.steps, again.marks, again.ends) == (first.steps, first.marks, first.ends)


def test_another_seed_gives_another_history() -> None:
    assert run_plan(plan_of(8)).digest != run_plan(plan_of(9)).digest
