"""`python -m tests.simulation.digests 8 10`: the digests of simulated histories, to compare two processes."""

import sys

from tests.simulation.campaign import plan_of
from tests.simulation.run import run_plan

if __name__ == "__main__":
    for seed in sys.argv[1:]:
        report = run_plan(plan_of(int(seed)))
        sys.stdout.write(f"{seed} {report.steps} {report.digest}\n")
