"""`python -m benchmarks.grpc_versions 1.78.2 1.85.1`: what an empty call costs a server with each version of grpcio.

Each version is installed into an environment of its own, together with uvloop. The client is that of this environment,
and turns to the servers by turns, with 64 calls in flight.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import empty_server
from benchmarks.creates import empty_per_s
from benchmarks.installation import cpu_s, free_port, wait_for_server

_CALLS = 5_000
_IN_FLIGHT = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "versions", nargs="+", metavar="VERSION", help="of grpcio; the first is what others are held to"
    )
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    rates, costs = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    with ExitStack() as stack:
        servers = {version: _served(version, stack) for version in arguments.versions}
        for _ in range(arguments.rounds):
            for version, (server, address) in servers.items():
                used_s = cpu_s(server)
                rates[version].append(empty_per_s(address, _CALLS, _IN_FLIGHT))
                costs[version].append((cpu_s(server) - used_s) / _CALLS * 1e6)
    Console().print(_table(rates, costs))


def _served(version: str, stack: ExitStack) -> tuple["subprocess.Popen[bytes]", str]:
    """A server with this version, and its address."""
    Console(stderr=True).print(f"installing grpcio {version} …")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clepsydra-grpc-")))
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"grpcio=={version}", "uvloop"], check=True)
    port = free_port()
    server = subprocess.Popen([python, empty_server.__file__, str(port)])
    stack.callback(server.wait)
    stack.callback(server.kill)
    wait_for_server(f"127.0.0.1:{port}")
    return server, f"127.0.0.1:{port}"


def _table(rates: dict[str, list[float]], costs: dict[str, list[float]]) -> Table:
    table = Table("grpcio", "calls/s", "to the first", "µs of the server for a call")
    first = next(iter(rates.values()))
    for version, rate in rates.items():
        share = statistics.median(mine / its for mine, its in zip(rate, first, strict=True))
        cost = statistics.median(costs[version])
        table.add_row(version, f"{statistics.median(rate):,.0f}", f"{share:.2f}", f"{cost:.0f}")
    return table


if __name__ == "__main__":
    main()
