"""`python -m benchmarks.capacity`: many slow plain functions, few threads, and others that come due meanwhile.

One worker executes actions whose plain function takes a second, with a timeout of three and one attempt. Printed is how
many of them succeeded, and how late coroutines and HTTP requests started, without them and beside them.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.installation import Installation, wait_until
from benchmarks.other_tenant import at, create, lateness_ms, now_us, percentile, servers, states
from clepsydra.core.times import SECOND_US, duration
from clepsydra.v1.action_pb2 import PythonHandler, RetryPolicy, Spec


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity", description=__doc__)
    parser.add_argument("--actions", type=int, default=2000, help="with a slow function (default 2,000)")
    parser.add_argument("--per-s", type=int, default=50, help="of the others (default 50)")
    parser.add_argument("--seconds", type=int, default=20, help="for which the others go on (default 20)")
    parser.add_argument("--within", type=float, default=20.0, help="exit with 1 if the others are later by this, in ms")
    chosen = parser.parse_args()
    slow = Spec(
        handler=PythonHandler(name="slow-function"),
        attempt_timeout=duration(3 * SECOND_US),
        retry=RetryPolicy(max_attempts=1),
    )
    with (
        tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder,
        servers(Path(folder)) as ports,
        Installation(Path(folder), handlers="benchmarks.tenant_handlers") as installation,
    ):
        address = installation.scheduler()
        installation.worker()
        alone = lateness_ms(installation, address, ports.good, chosen.per_s, chosen.seconds)
        create(address, (at(now_us(), slow) for _ in range(chosen.actions)))
        beside = lateness_ms(installation, address, ports.good, chosen.per_s, chosen.seconds)
        wait_until(lambda: states(address, "slow-function")["SCHEDULED"] == 0, pause_s=2)
        ended = states(address, "slow-function")
        installation.audit_is_clean()
    print(f"{chosen.actions} actions with a plain function of 1 s, a timeout of 3 s and one attempt: {dict(ended)}")
    for name, late_ms in (("without", alone), ("beside", beside)):
        figures = ", ".join(f"{part:.0%}: {percentile(late_ms, part):.1f}" for part in (0.5, 0.99, 1))
        print(f"{len(late_ms)} others {name} them, ms late: {figures}")
    later_ms = percentile(beside, 0.99) - percentile(alone, 0.99)
    sys.exit(1 if ended["SUCCEEDED"] < chosen.actions or later_ms > chosen.within else 0)


if __name__ == "__main__":
    main()
