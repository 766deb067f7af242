"""Histories that every machine must come to.

python -m tests.simulation.golden     # writes golden.txt anew, after a change of what workers or schedulers do
"""

import sys
from pathlib import Path

from tests.simulation.campaign import plan_of
from tests.simulation.run import run_plan

# Three on memory, one on SQLite; with kills, stalls, wrong clocks, broken locks, outages and calls in trouble.
SEEDS = (8, 10, 14, 67)
GOLDEN = Path(__file__).with_name("golden.txt")


def digests() -> str:
    """A line for each seed: its number, how many steps it took, and the digest of its history."""
    reports = [run_plan(plan_of(seed)) for seed in SEEDS]
    return "".join(f"{report.plan.seed} {report.steps} {report.digest}\n" for report in reports)


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(digests())
    else:
        GOLDEN.write_text(digests())
