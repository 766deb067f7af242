"""Explores small worlds from the command line.

python -m tests.interleaving              # all of them, on all cores
python -m tests.interleaving --few        # those of the test suite
python -m tests.interleaving --mutations  # shows how each mutation of the guard is found out
"""

import argparse
import sys

from tests.cores import ALL_CORES, cores
from tests.interleaving.campaign import campaign, mutate
from tests.interleaving.mutations import MUTATIONS
from tests.interleaving.worlds import all_worlds, few_worlds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interleaving", description="Every order of store calls.")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--processes", type=int, default=ALL_CORES)
    options = parser.parse_args(arguments)
    if options.mutations:
        return _show_mutations()
    with cores(options.processes) as executor:
        shapes = few_worlds() if options.few else all_worlds()
        done = campaign(executor, shapes, lambda so_far: _say(so_far.line()))
    _say(done.line())
    for shape, found in done.broken:
        _say("", shape.name(), *found.lines())
    return 1 if done.broken else 0


def _show_mutations() -> int:
    missed = 0
    for mutation, found in map(mutate, range(len(MUTATIONS))):
        missed += found.broken is None
        _say(mutation, *found.lines(), "")
    return 1 if missed else 0


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
