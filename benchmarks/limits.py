"""`python -m benchmarks.limits`: what the parts can do alone, and how much of that is left when they work together.

Each part is measured by itself, in this process: syncs of the disk, the SQLite store with batches that are ready to be
written, tasks of the event loop, gRPC calls that do nothing. Then the installation as a whole, in the same round.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks import measures
from benchmarks.creates import BATCH, OPTIONS, action, empty_per_s
from benchmarks.installation import free_port, wait_for_server
from clepsydra.core.action.spec import fill_in
from clepsydra.core.clock import SystemClock
from clepsydra.core.ids import Ids
from clepsydra.core.times import HOUR_US, SECOND_US
from clepsydra.store.port import Action, Advance, AdvanceOutcome, Mark, Put, PutOutcome, Row, Store
from clepsydra.store.sqlite import SqliteStore
from clepsydra.v1.action_pb2 import Spec
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest

_PAGE = b"\0" * 4096
_STORE_BATCH = 1000
_SHARDS = 8

# A figure of the whole, and the part that it is held against: their quotient is the share that is reached.
_SHARES = (
    ("creates/s, 64 in flight", "empty gRPC calls/s, 64 in flight"),
    (f"creates/s, batches of {BATCH}", f"items/s in empty gRPC calls of {BATCH}"),
    (f"creates/s, batches of {BATCH}", "put/s, SQLite store alone"),
    ("executed/s, 1 worker", "begun and finished/s, SQLite store alone"),
    ("executed/s, 1 worker", "no-op tasks/s, event loop alone"),
)


def syncs_per_s(seconds: float = 2.0) -> float:
    """A page written and synced, one after the other: what a commit costs at least."""
    with tempfile.TemporaryFile() as file:
        descriptor, done, ends = file.fileno(), 0, time.perf_counter() + seconds
        while time.perf_counter() < ends:
            os.pwrite(descriptor, _PAGE, done % 1000 * len(_PAGE))
            os.fdatasync(descriptor)
            done += 1
    return done / seconds


async def tasks_per_s(count: int) -> float:
    async def nothing() -> None:
        pass

    loop, started = asyncio.get_running_loop(), time.perf_counter()
    for _ in range(0, count, _STORE_BATCH):
        await asyncio.gather(*(loop.create_task(nothing()) for _ in range(_STORE_BATCH)))
    return count / (time.perf_counter() - started)


async def store_alone(folder: Path, count: int) -> dict[str, float]:
    """Batches that are ready, four at a time: B-trees and commits, and the threads between them and the event loop."""
    path = str(folder / "store.db")
    await SqliteStore.install(path, _SHARDS)
    store = await SqliteStore.open(path, SystemClock())
    try:
        puts = _puts(Ids.from_system(), count)
        put_s = await _timed(lambda: _all(store, puts, _put))
        rows = await _migrated(store)
        advance_s = await _timed(lambda: _all(store, rows, _begin_and_finish))
    finally:
        await store.close()
    return {"put/s, SQLite store alone": count / put_s, "begun and finished/s, SQLite store alone": count / advance_s}


def _puts(ids: Ids, count: int) -> list[Put]:
    now_us = SystemClock().now_us()
    spec = Spec()
    spec.CopyFrom(action(now_us).action.spec)
    fill_in(spec, now_us)
    encoded, status, meta = spec.SerializeToString(), b"s" * 40, b"m" * 110
    return [
        Put(None, Action(ids.action_id(now_us), ids.guid(), meta, encoded, status, now_us), n % _SHARDS, now_us)
        for n in range(count)
    ]


async def _all(store: Store, things: list[Any], work: Callable[[Store, list[Any]], Awaitable[None]]) -> None:
    chunks = iter([things[n : n + _STORE_BATCH] for n in range(0, len(things), _STORE_BATCH)])

    async def take() -> None:
        for chunk in chunks:
            await work(store, chunk)

    await _four(take)


async def _put(store: Store, puts: list[Put]) -> None:
    results = await store.put(puts)
    assert all(result.outcome is PutOutcome.DONE for result in results)


async def _migrated(store: Store) -> list[Row]:
    """Everything let through to processing_queue, in the order of creation: so a worker takes it, from all shards."""
    everything: dict[str, Any] = {
        "incoming_from_us": 0,
        "incoming_limit": 10**6,
        "from_us": 0,
        "until_us": 2**60,
        "limit": 10**6,
    }
    rows: list[Row] = []
    for shard_id in range(_SHARDS):
        page = await store.due(shard_id, **everything)
        await store.migrate([due.row for due in page.incoming], Mark("migration", 1))
        rows += [due.row for due in (await store.due(shard_id, **everything)).due]
    return sorted(rows, key=lambda row: row.action_id)


async def _begin_and_finish(store: Store, rows: list[Row]) -> None:
    """As a worker does it: to the end of the lease, and then to the purge, with the status."""
    at_us, mark = rows[0].at_us, f"{id(rows):x}"
    begun = [Advance(row, at_us + 35 * SECOND_US) for row in rows]
    assert all(each is AdvanceOutcome.DONE for each in await store.advance(begun, Mark(mark, 1)))
    moved = [row._replace(at_us=at_us + 35 * SECOND_US, scheduled_at_us=at_us + 35 * SECOND_US) for row in rows]
    purge_us = at_us + 24 * HOUR_US
    finished = [Advance(row, purge_us, at_us, b"s" * 120, purge_us) for row in moved]
    assert all(each is AdvanceOutcome.DONE for each in await store.advance(finished, Mark(mark, 2)))


async def _timed(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


def calls_alone(count: int) -> dict[str, float]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.empty_server", str(port)])
    address = f"127.0.0.1:{port}"
    try:
        wait_for_server(address)
        return {
            "empty gRPC calls/s, 64 in flight": empty_per_s(address, count // 4, 64),
            f"items/s in empty gRPC calls of {BATCH}": uvloop.run(_items_per_s(address, count)),
        }
    finally:
        server.kill()
        server.wait()


async def _items_per_s(address: str, count: int) -> float:
    """Batches that are built, sent, sent back as they are, and read: what is left out is what the scheduler does."""
    start_us = SystemClock().now_us() + HOUR_US
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        echo = channel.unary_unary(
            "/benchmark/Echo", BatchCreateActionsRequest.SerializeToString, BatchCreateActionsRequest.FromString
        )

        async def send(batches: int) -> None:
            for _ in range(batches):
                await echo(BatchCreateActionsRequest(requests=[action(start_us) for _ in range(BATCH)]))

        seconds = await _timed(lambda: _four(lambda: send(count // BATCH // 4)))
    return count / seconds


async def _four(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*(work() for _ in range(4)))


def one_round(count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="clepsydra-limits-") as folder:
        parts = uvloop.run(store_alone(Path(folder), count))
    parts["syncs of the disk/s"] = syncs_per_s()
    parts["no-op tasks/s, event loop alone"] = uvloop.run(tasks_per_s(5 * count))
    return parts | calls_alone(count) | measures.creates(count) | measures.drain(count, 1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each figure is taken (default 3)")
    parser.add_argument("--actions", type=int, default=40_000, help="actions of each measure (default 40000)")
    chosen = parser.parse_args()
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(chosen.rounds):
        for figure, value in one_round(chosen.actions).items():
            taken[figure].append(value)
    medians = {figure: statistics.median(values) for figure, values in taken.items()}
    table = Table("figure", title="medians, and the spread of the rounds")
    for column in ("median", "least", "most"):
        table.add_column(column, justify="right")
    for figure, values in taken.items():
        table.add_row(figure, *(f"{value:,.0f}" for value in (medians[figure], min(values), max(values))))
    shares = Table("figure", "held against", title="how much of a part's speed the whole reaches")
    shares.add_column("share", justify="right")
    for figure, part in _SHARES:
        shares.add_row(figure, part, f"{medians[figure] / medians[part]:.2f}")
    Console().print(table, shares)


if __name__ == "__main__":
    main()
