"""Histories that every machine must come to.

python -m tests.simulation.golden     # writes golden.txt anew, after a change of what workers or schedulers do

The order of asyncio's own callbacks is part of a run and differs between versions of Python, so each has its histories.
"""

import sys
from pathlib import Path

from tests.simulation.campaign import plan_of
from tests.simulation.run import run_plan

# Three on memory, one on SQLite; with kills, stalls, wrong clocks, broken locks, outages and calls in trouble.
SEEDS = (8, 10, 14, 67)
GOLDEN = Path(__file__).with_name("golden.txt")


_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def digests() -> list[str]:
    """A line for each seed: the version of Python, the seed, how many steps it took, and the digest of its history."""
    reports = [run_plan(plan_of(seed)) for seed in SEEDS]
    return [f"{_PYTHON} {report.plan.seed} {report.steps} {report.digest}" for report in reports]


def committed() -> list[str]:
    """What was written down for this version of Python, if anything was."""
    return [line for line in GOLDEN.read_text().splitlines() if line.startswith(f"{_PYTHON} ")]


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write("\n".join(digests()) + "\n")
    else:
        GOLDEN.write_text("\n".join(digests()) + "\n")
