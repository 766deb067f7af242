"""`python -m tests.fuzz --calls 50000 --seed 1`: the long form, with progress and a table of what was answered."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Campaign, campaign
from tests.fuzz.verdicts import Wrong

_TOLD_EVERY = 5000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000, help="how many calls (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="what chance begins with; any, if not given")
    given = parser.parse_args()
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    _say(f"{given.calls:,} calls with --seed {seed}")
    with tempfile.TemporaryDirectory(prefix="clepsydra-fuzz-") as folder:
        return asyncio.run(_fuzz(Path(folder), given.calls, seed))


async def _fuzz(folder: Path, calls: int, seed: int) -> int:
    began = time.monotonic()
    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if done >= told + _TOLD_EVERY:
            told = done
            _say(f"{done:>8,} calls, {time.monotonic() - began:.0f} s")

    try:
        async with campaign(folder, seed) as fuzzing:
            await fuzzing.run(calls, progress)
    except Wrong as wrong:
        _say(str(wrong))
        return 1
    _summarise(fuzzing)
    _say(f"{calls:,} calls in {time.monotonic() - began:.0f} s: every answer as documented, the store audited clean")
    return 0


def _summarise(fuzzing: Campaign) -> None:
    methods = sorted({method for method, _ in fuzzing.answers})
    for method in methods:
        codes = {code: number for (of, code), number in fuzzing.answers.items() if of == method}
        said = ", ".join(f"{code} {number:,}" for code, number in sorted(codes.items(), key=lambda pair: -pair[1]))
        _say(f"  {method:<20}{said}")
    _say(f"  the store was written {fuzzing.writes:,} times, never by a rejected call")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
