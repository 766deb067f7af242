"""`python -m benchmarks.ydb`: creates, drain and lateness on a YDB server, with one worker and with a fleet.

`--server grpc://localhost:2136/local` names the server. Each measure has an installation of its own there, in a
directory that is removed afterwards, and ends with an audit. Without a server, the endpoint for tests is started
instead: that shows that the program works, and its figures mean nothing.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.__main__ import table_of
from benchmarks.creates import batched_per_s, single_per_s
from benchmarks.installation import Installation
from benchmarks.measures import Figures, drained, start_lateness_ms
from clepsydra.store.ydb.url import parse_url
from tests.ydb.installations import as_store_url, remove, version_at
from tests.ydb_endpoint.__main__ import NAME as ENDPOINT

ROOT = Path(__file__).parents[1]
MEANINGLESS = "This is the endpoint for tests, not YDB: these figures mean nothing."


def creates(installation: Installation, count: int) -> Figures:
    address = installation.scheduler()
    return {
        "creates/s, 1 in flight": single_per_s(address, max(1, count // 20), 1),
        "creates/s, 64 in flight": single_per_s(address, max(1, count // 4), 64),
        "creates/s, batches of 500": batched_per_s(address, count),
    }


def lateness(installation: Installation, workers: int, per_s: int, seconds: int) -> Figures:
    """How late attempts start that are planned some seconds ahead, at default settings."""
    address = installation.scheduler()
    for _ in range(workers):
        installation.worker()
    late_ms = start_lateness_ms(installation, address, per_s, seconds)
    name = f"ms late, {per_s}/s, {workers} worker{'s' if workers > 1 else ''}"
    return {
        f"median {name}": late_ms[len(late_ms) // 2],
        f"99th percentile {name}": late_ms[len(late_ms) * 99 // 100],
        f"most {name}": late_ms[-1],
    }


@contextmanager
def server_or_endpoint(server: str | None) -> Iterator[str]:
    """The URL of the database."""
    if server is not None:
        yield as_store_url(server)
        return
    endpoint = subprocess.Popen(
        [sys.executable, "-m", "tests.ydb_endpoint", "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert endpoint.stdout is not None
    try:
        yield f"ydb://127.0.0.1:{int(endpoint.stdout.readline())}/local"
    finally:
        endpoint.terminate()
        endpoint.wait()
        endpoint.stdout.close()


def measured(database: str, name: str, shards: int, measure: Callable[[Installation], Figures]) -> Figures:
    """A measure on an installation of its own, with an audit at its end."""
    path = f"clepsydra_benchmarks/{os.getpid()}_{time.time_ns()}_{name.replace(' ', '_')}"
    store = f"{database}?path={path}"
    with tempfile.TemporaryDirectory(prefix="clepsydra-bench-") as folder:
        try:
            with Installation(Path(folder), store, shards) as installation:
                figures = measure(installation)
                installation.audit_is_clean()
                return figures
        finally:
            asyncio.run(remove(parse_url(store)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ydb", description=__doc__)
    parser.add_argument("--server", help="grpc://host:2136/database (default: the endpoint for tests)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each figure is taken (default 3)")
    parser.add_argument("--actions", type=int, default=20_000, help="actions for creates and drain (default 20000)")
    parser.add_argument("--workers", type=int, default=4, help="workers of the fleet (default 4)")
    parser.add_argument("--shards", type=int, default=16, help="shards of each installation (default 16)")
    parser.add_argument("--per-s", type=int, default=100, help="attempts a second for lateness (default 100)")
    parser.add_argument("--seconds", type=int, default=20, help="how long lateness is measured (default 20)")
    parser.add_argument("--only", help="only the measures whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the figures of every round to this file")
    chosen = parser.parse_args()
    fleet = chosen.workers
    work: dict[str, Callable[[Installation], Figures]] = {
        "creates": lambda installation: creates(installation, chosen.actions),
        "drain by one": lambda installation: drained(installation, chosen.actions, 1),
        "drain by a fleet": lambda installation: drained(installation, chosen.actions, fleet),
        "lateness of one": lambda installation: lateness(installation, 1, chosen.per_s, chosen.seconds),
        "lateness of a fleet": lambda installation: lateness(installation, fleet, chosen.per_s, chosen.seconds),
    }
    taken: dict[str, list[float]] = {}
    console = Console()
    with server_or_endpoint(chosen.server) as database:
        version = asyncio.run(version_at(database))
        console.print(f"server: {version}")
        for round_number in range(1, chosen.rounds + 1):
            for name, measure in work.items():
                if chosen.only and chosen.only not in name:
                    continue
                console.print(f"round {round_number}: {name} …", style="dim")
                for figure, value in measured(database, name, chosen.shards, measure).items():
                    taken.setdefault(figure, []).append(value)
    console.print(table_of(taken))
    console.print("Every audit was clean.")
    if version == ENDPOINT:
        console.print(MEANINGLESS, style="bold")
    if chosen.json:
        chosen.json.write_text(json.dumps(taken, indent=2) + "\n")


if __name__ == "__main__":
    main()
