"""`python -m benchmarks.takeover`: how soon is begun again what a killed worker had in hand?

In each round one worker has all attempts in hand; another one is started, and the first is ended with `kill -9` at some
moment of its leases. Printed is the time from there until every one of the attempts was begun again. All settings are
the defaults.
"""

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import uvloop

from benchmarks.creates import create_in_batches
from benchmarks.installation import Installation, wait_until
from clepsydra.core.times import SECOND_US
from clepsydra.worker.settings import WorkerSettings
from tests.postgres.server import running

# A worker that has started holds a lock soon, if one is free; here all are taken, so it is given this long.
_SETTLE_S = 2.0


class Bench:
    def __init__(self, installation: Installation, attempts: int, moments: random.Random) -> None:
        self._installation = installation
        self._address = installation.scheduler()
        self._attempts = attempts
        self._moments = moments
        self._worker = installation.worker()

    def round(self) -> float:
        """Seconds from the death of the worker to the last of the attempts that began again."""
        before = self._begun()
        uvloop.run(create_in_batches(self._address, [time.time_ns() // 1000 - SECOND_US] * self._attempts, "hold"))
        wait_until(lambda: self._begun()[1] - before[1] == self._attempts)
        heir = self._installation.worker()
        time.sleep(_SETTLE_S + self._moments.uniform(0, WorkerSettings().lease_ms / 1000))
        self._worker.kill()
        self._worker.wait()
        killed_us = time.time_ns() // 1000
        wait_until(lambda: self._begun()[2] - before[2] >= self._attempts)
        self._worker = heir
        return (max(at_us for _, at_us in self._starts()) - killed_us) / SECOND_US

    def _begun(self) -> Counter[int]:
        """How many attempts have begun, by their number within the occurrence."""
        return Counter(number for number, _ in self._starts())

    def _starts(self) -> Iterator[tuple[int, int]]:
        for path in self._installation.folder.glob("starts-*"):
            # The last line may be half written.
            for line in path.read_text().split("\n")[:-1]:
                number, at_us = line.split()
                yield int(number), int(at_us)


@contextlib.contextmanager
def _store(name: str) -> Iterator[str | None]:
    if name == "sqlite":
        yield None
    else:
        with running() as server:
            yield server.url


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.takeover", description=__doc__)
    parser.add_argument("--stores", default="sqlite,postgres", help="sqlite, postgres or both (default)")
    parser.add_argument("--rounds", type=int, default=10, help="workers to kill on each store (default 10)")
    parser.add_argument("--attempts", type=int, default=500, help="attempts in hand (default 500)")
    parser.add_argument("--within", type=float, default=12.0, help="exit with 1 if it takes longer (default 12 s)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which workers are killed")
    chosen = parser.parse_args()
    longest_s = 0.0
    for name in chosen.stores.split(","):
        with (
            _store(name) as url,
            tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder,
            Installation(Path(folder), url) as installation,
        ):
            bench = Bench(installation, chosen.attempts, random.Random(chosen.seed))
            taken = [bench.round() for _ in range(chosen.rounds)]
            installation.audit_is_clean()
        print(
            f"{name}: all {chosen.attempts} attempts of a killed worker were begun again after "
            f"{statistics.median(taken):.2f} s ({min(taken):.2f} to {max(taken):.2f}) in {chosen.rounds} rounds"
        )
        longest_s = max(longest_s, *taken)
    sys.exit(1 if longest_s > chosen.within else 0)


if __name__ == "__main__":
    main()
