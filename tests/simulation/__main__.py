"""Runs the simulation from the command line.

python -m tests.simulation --seeds 0..1000          # these seeds, on all cores
python -m tests.simulation --seconds 600            # as many as fit, starting from --from
python -m tests.simulation --seed 17 --verbose      # one seed, with its history
python -m tests.simulation --shrink 17              # the smallest run that breaks the same promise
"""

import argparse
import sys

from tests.cores import ALL_CORES, cores
from tests.simulation.campaign import Order, campaign, plan_of
from tests.simulation.plan import Plan
from tests.simulation.run import Report, run_plan
from tests.simulation.shrink import shrink, size_of


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="Deterministic simulation.")
    parser.add_argument("--seeds", metavar="A..B", help="run these seeds, the last one excluded")
    parser.add_argument("--seconds", type=float, help="run for so long, from the first seed of --seeds, or 0")
    parser.add_argument("--seed", type=int, help="run one seed")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="make a failing seed smaller")
    parser.add_argument("--store", choices=("memory", "sqlite"), help="instead of the store that the seed chooses")
    parser.add_argument("--broken-max", type=int, default=1, help="go on until so many runs have broken a promise")
    parser.add_argument("--processes", type=int, default=ALL_CORES)
    parser.add_argument("--verbose", action="store_true", help="show the history of a run that breaks nothing, too")
    options = parser.parse_args(arguments)
    if options.shrink is not None:
        return _shrink(plan_of(options.shrink, options.store))
    if options.seed is not None:
        return _show(run_plan(plan_of(options.seed, options.store)), verbose=options.verbose)
    first, _, last = (options.seeds or "0..").partition("..")
    return _run_many(int(first), int(last) if last else None, options)


def _run_many(first: int, last: int | None, options: argparse.Namespace) -> int:
    if last is None and options.seconds is None:
        last = first + 1000
    order = Order(first, last, options.seconds, options.store, options.broken_max)
    with cores(options.processes) as executor:
        done = campaign(executor, order, lambda so_far: _say(so_far.line()))
    _say(done.line())
    _say(*done.summary())
    on = f" --store {options.store}" if options.store else ""
    for seed in sorted(done.broken):
        _say(f"\nseed {seed}: {run_plan(plan_of(seed, options.store)).violation}")
        _say(f"  python -m tests.simulation{on} --seed {seed}    # its history")
        _say(f"  python -m tests.simulation{on} --shrink {seed}")
    return 1 if done.broken else 0


def _show(report: Report, *, verbose: bool) -> int:
    if report.violation is not None or verbose:
        _say(*report.history.lines())
    _say(f"seed {report.plan.seed} on {report.plan.store}: {report.steps} steps, history {report.digest}")
    _say(str(report.violation or "no promise was broken"))
    return 1 if report.violation is not None else 0


def _shrink(plan: Plan) -> int:
    first = run_plan(plan)
    if first.violation is None:
        _say(f"seed {plan.seed} breaks nothing")
        return 0
    promise = first.violation.promise
    _say(f"{first.violation}; size {size_of(plan)}")

    def fails(smaller: Plan) -> bool:
        violation = run_plan(smaller).violation
        return violation is not None and violation.promise == promise

    smallest = shrink(plan, fails, lambda smaller: _say(f"size {size_of(smaller)}"))
    report = run_plan(smallest)
    _say(*report.history.lines(), "", str(smallest))
    return 1


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
