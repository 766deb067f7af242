"""Explores small worlds from the command line.

python -m tests.interleaving              # all of them, on both cores
python -m tests.interleaving --few        # those of the test suite
python -m tests.interleaving --mutations  # shows how each mutation of the guard is found out
"""

import argparse
import sys

from tests.cores import cores
from tests.interleaving.campaign import campaign
from tests.interleaving.explore import Exploration, explore
from tests.interleaving.mutations import MUTATIONS
from tests.interleaving.worlds import all_worlds, few_worlds


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interleaving", description="Every order of store calls.")
    parser.add_argument("--few", action="store_true")
    parser.add_argument("--mutations", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    if options.mutations:
        return _show_mutations()
    with cores(options.processes) as executor:
        shapes = few_worlds() if options.few else all_worlds()
        done = campaign(executor, shapes, lambda so_far: _say(so_far.line()))
    _say(done.line())
    for shape, found in done.broken:
        _say("", shape.name(), *_told(found))
    return 1 if done.broken else 0


def _show_mutations() -> int:
    missed = 0
    for mutation, shape in MUTATIONS.items():
        found = explore(mutation(shape))
        missed += found.broken is None
        _say(f"{mutation.__doc__}", *_told(found), "")
    return 1 if missed else 0


def _told(found: Exploration) -> list[str]:
    return [*(f"    {move}" for move in found.path), f"  {found.broken or 'nothing is broken'}"]


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
