"""`python -m tests.stateful --examples 200`: the long form, for one store or each in turn."""

import argparse
import os
import sys
import time

from tests.conformance.backends import BACKENDS
from tests.stateful.campaign import LONG, Effort, explore
from tests.stateful.test_stores import STORES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stateful", description=__doc__)
    parser.add_argument("--store", choices=STORES, action="append", help="may be repeated; all of them if not given")
    parser.add_argument("--examples", type=int, default=LONG.examples, help="sequences per store [%(default)s]")
    parser.add_argument("--steps", type=int, default=LONG.steps, help="groups of calls in a sequence [%(default)s]")
    given = parser.parse_args()
    # The YDB endpoint is started and stopped for every sequence, and gRPC would tell each time.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    for store in given.store or STORES:
        began = time.monotonic()
        made = explore(BACKENDS[store], Effort(given.examples, given.steps))
        calls = sum(number for kind, number in made.items() if kind not in {"runs", "other orders"})
        sys.stdout.write(
            f"{store}: {made['runs']:,} sequences of {calls:,} calls, {made['other orders']:,} groups in another order "
            f"than they were sent in, {time.monotonic() - began:.0f} s: every answer, and the tables, as the model's\n"
        )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
