"""A tenant whose lateness is measured, whatever others do: coroutines and HTTP requests at a steady pace."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc
import uvloop

from benchmarks.creates import BATCH, OPTIONS
from benchmarks.installation import Installation, free_port, wait_until
from benchmarks.notes import lateness_us
from clepsydra.core.times import SECOND_US, set_us
from clepsydra.v1.action_pb2 import HttpRequest, PythonHandler, ScheduledAction, Spec, State
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, ListActionsRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub

_SOON_US = 4 * SECOND_US


class Ports(NamedTuple):
    good: int
    silent: int
    names: int


@contextmanager
def servers(folder: Path) -> Iterator[Ports]:
    ports = Ports(free_port(), free_port(), free_port())
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.http_servers", str(folder), *map(str, ports)])
    os.environ["BENCHMARK_NAME_SERVER"] = str(ports.names)
    try:
        wait_until((folder / "starts-http").exists)
        yield ports
    finally:
        process.kill()
        process.wait()


def now_us() -> int:
    return time.time_ns() // 1000


def at(start_us: int, spec: Spec) -> Spec:
    planned = Spec()
    planned.CopyFrom(spec)
    set_us(planned.schedule.start_time, start_us)
    return planned


async def _create(address: str, specs: Iterable[Spec]) -> None:
    requests = BatchCreateActionsRequest()
    for spec in specs:
        requests.requests.add().action.spec.CopyFrom(spec)
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
        each = list(requests.requests)
        for start in range(0, len(each), BATCH):
            response = await stub.BatchCreateActions(BatchCreateActionsRequest(requests=each[start : start + BATCH]))
            refused = [result.error for result in response.results if result.HasField("error")]
            if refused:
                raise RuntimeError(f"a create was refused: {refused[0]}")


def create(address: str, specs: Iterable[Spec]) -> None:
    uvloop.run(_create(address, specs))


def lateness_ms(installation: Installation, address: str, good: int, per_s: int, seconds: int) -> list[float]:
    """Half are coroutines, and half are requests to a server that answers. Returns how late each started, in order."""
    before = len(lateness_us(installation.folder))
    count, first_us = per_s * seconds, now_us() + _SOON_US
    targets = (Spec(handler=PythonHandler(name="note")), Spec(http=HttpRequest(url=f"http://127.0.0.1:{good}/")))
    create(address, (at(first_us + n * SECOND_US // per_s, targets[n % 2]) for n in range(count)))
    # Reading the notes meanwhile would take the processor away from what is measured.
    time.sleep(max(0.0, (first_us - now_us()) / SECOND_US) + seconds)
    wait_until(lambda: len(lateness_us(installation.folder)) >= before + count, pause_s=0.2)
    # Those of this stream are known by the time for which they were planned.
    late_us = sorted(
        int(started) - int(planned)
        for path in installation.folder.glob("starts-*")
        for planned, started in map(str.split, path.read_text().splitlines())
        if int(planned) >= first_us
    )
    if late_us[0] < 0:
        raise AssertionError(f"an attempt started {-late_us[0]} µs early")
    return [each / 1000 for each in late_us]


def percentile(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def states(address: str, handler: str) -> Counter[str]:
    """How the actions of a handler stand."""
    return Counter(
        State.Name(action.status.state) for action in actions(address) if action.spec.handler.name == handler
    )


def actions(address: str) -> Iterator[ScheduledAction]:
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        stub, token = SchedulerServiceStub(channel), ""  # type: ignore[no-untyped-call]
        while True:
            page = stub.ListActions(ListActionsRequest(page_size=1000, page_token=token))
            yield from page.actions
            token = page.next_page_token
            if not token:
                return
