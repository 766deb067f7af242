"""The long form of what shows the promises: `make prove`, or `make prove PROVE_SECONDS=60`.

First the mutations of the guard, each of which must be found out; then every interleaving of the small worlds; then
simulated runs for the rest of the time. As soon as a promise is broken it ends with status 1 and the whole history.

Whatever it names can be repeated, on any machine:

    python -m tests.simulation --seed 17        one run, with its history if it breaks a promise (--verbose: anyway)
    python -m tests.simulation --shrink 17      the smallest run that breaks the same promise
    python -m tests.interleaving --mutations    how each mutation is found out
    python -m tests.interleaving                the small worlds alone
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Executor

from tests.cores import ALL_CORES, cores, in_order_of_completion
from tests.interleaving import campaign as interleavings
from tests.interleaving.mutations import MUTATIONS
from tests.interleaving.world import Shape
from tests.interleaving.worlds import many_worlds
from tests.simulation import campaign as simulation
from tests.simulation.run import run_plan

# On two cores that have nothing else to do, the worlds take a quarter of ten minutes. Where there is less time, some of
# them are left out, and it says so.
_SHARE_OF_WORLDS = 0.25


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600, help="how long it takes in all (default 600)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first simulated seed (default 0)")
    parser.add_argument("--processes", type=int, default=ALL_CORES, help=f"default {ALL_CORES}, all cores")
    options = parser.parse_args(arguments)
    started_s = time.monotonic()
    ends_s = started_s + options.seconds
    with cores(options.processes) as executor:
        is_sound = (
            _mutations_are_found(executor)
            and _worlds_are_sound(executor, started_s + _SHARE_OF_WORLDS * options.seconds)
            and _runs_are_sound(executor, options.first, ends_s)
        )
    took = f"in {time.monotonic() - started_s:.0f} s on {options.processes} processes"
    _say("", f"nothing is broken, {took}" if is_sound else f"BROKEN, {took}: see above")
    return 0 if is_sound else 1


def _mutations_are_found(executor: Executor) -> bool:
    explored = in_order_of_completion(executor, interleavings.mutate, range(len(MUTATIONS)))
    missed = [mutation for mutation, found in explored if found.broken is None]
    _say(f"mutations: {len(MUTATIONS) - len(missed)} of {len(MUTATIONS)} are found out", *missed)
    return not missed


def _worlds_are_sound(executor: Executor, until_s: float) -> bool:
    shapes = list(many_worlds())
    done = interleavings.campaign(executor, _until(shapes, until_s), lambda so_far: _say(f"worlds: {so_far.line()}"))
    _say(f"worlds: {done.line()}")
    if done.worlds < len(shapes) and not done.broken:
        _say(f"worlds: there was time for {done.worlds} of {len(shapes)}")
    for shape, found in done.broken:
        _say("", str(shape), *found.lines())
    return not done.broken


def _until(shapes: list[Shape], until_s: float) -> Iterator[Shape]:
    for shape in shapes:
        if time.monotonic() >= until_s:
            return
        yield shape


def _runs_are_sound(executor: Executor, first: int, ends_s: float) -> bool:
    order = simulation.Order(first, seconds=max(0.0, ends_s - time.monotonic()))
    done = simulation.campaign(executor, order, lambda so_far: _say(f"runs: {so_far.line()}"))
    _say(f"runs: {done.line()}", *done.summary())
    for seed in sorted(done.broken):
        report = run_plan(simulation.plan_of(seed))
        _say("", *report.history.lines(), f"seed {seed}: {report.violation}")
        _say(f"  python -m tests.simulation --shrink {seed}")
    return not done.broken


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
