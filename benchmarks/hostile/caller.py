"""A hostile caller, in a process of its own: `python -m benchmarks.hostile.caller KIND ADDRESS SECONDS`."""

import sys
import time

from benchmarks.hostile.kinds import KINDS


def main() -> None:
    kind, address, seconds = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    KINDS[kind](address, lambda: time.monotonic() >= end)


if __name__ == "__main__":
    main()
