"""`python -m benchmarks.tenants`: one tenant's lateness beside others with silent servers and dead names.

One worker at default settings. Printed is how late coroutines and HTTP requests started, first without the others, and
then beside 2,000 requests to one silent server, requests to a thousand silent servers and to a thousand names that no
name server answers for, and 32 plain functions that take 12 s.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.installation import Installation
from benchmarks.other_tenant import Ports, at, create, lateness_ms, now_us, percentile, servers
from clepsydra.v1.action_pb2 import HttpRequest, PythonHandler, Spec


def bad_tenants(ports: Ports, many: int) -> Iterator[Spec]:
    for _ in range(2 * many):
        yield Spec(http=HttpRequest(url=f"http://127.0.0.1:{ports.silent}/"))
    for n in range(many):
        yield Spec(http=HttpRequest(url=f"http://127.1.{n // 250}.{n % 250 + 1}:{ports.silent}/"))
        yield Spec(http=HttpRequest(url=f"http://dead-{n}.example.org/"))
    for _ in range(32):
        yield Spec(handler=PythonHandler(name="slower-function"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tenants", description=__doc__)
    parser.add_argument("--many", type=int, default=1000, help="silent servers, and dead names (default 1,000)")
    parser.add_argument("--per-s", type=int, default=50, help="actions of the tenant that is measured (default 50)")
    parser.add_argument("--seconds", type=int, default=20, help="for which it is measured (default 20)")
    parser.add_argument("--within", type=float, default=1.5, help="exit with 1 if it is later by this factor")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder,
        servers(Path(folder)) as ports,
        Installation(Path(folder), handlers="benchmarks.tenant_handlers") as installation,
    ):
        address = installation.scheduler()
        worker = installation.worker("--set", "worker.drain_ms=0")
        alone = lateness_ms(installation, address, ports.good, chosen.per_s, chosen.seconds)
        create(address, (at(now_us(), spec) for spec in bad_tenants(ports, chosen.many)))
        beside = lateness_ms(installation, address, ports.good, chosen.per_s, chosen.seconds)
        installation.stop(worker)
        installation.audit_is_clean()
    for name, late_ms in (("alone", alone), ("beside silent servers and dead names", beside)):
        figures = ", ".join(f"{part:.0%}: {percentile(late_ms, part):.1f}" for part in (0.5, 0.99, 1))
        print(f"{len(late_ms)} actions {name}, ms late: {figures}")
    factor = percentile(beside, 0.99) / percentile(alone, 0.99)
    print(f"99th percentile: {factor:.2f} times as late")
    sys.exit(1 if factor > chosen.within else 0)


if __name__ == "__main__":
    main()
