"""Culprits among innocent actions: they end their process, block their loop, never return, raise all that Python has.

    python -m tests.chaos.culprits --store sqlite --innocent 5000 --workers 3 --seconds 600

Workers that die are started again, as a supervisor does. In the end every innocent action must have succeeded, and what
ends its process must be parked after at most three deaths, with a reason that names its handler.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import grpc

from clepsydra.core.times import SECOND_US, duration
from clepsydra.tools.exits import Exit
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Periodic, PythonHandler, RetryPolicy, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest, ListActionsRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.chaos.culprit_handlers import VARIABLE
from tests.chaos.postgres import PostgresChaos
from tests.chaos.processes import Node, command_line, run_command
from tests.chaos.stores import ChaosStore, SqliteChaos
from tests.chaos.until import until
from tests.end_to_end.processes import address_in

DEATHS_MAX = 3
_BATCH = 500
_LOOK_S = 0.2


class Size(NamedTuple):
    innocent: int
    workers: int
    # How long the innocent actions are spread over, and how long everything may take after that.
    spread_s: float
    within_s: float
    blocked_ms: int
    settings: Sequence[str] = ()


class Verdict(NamedTuple):
    violations: list[str]
    deaths: int
    states: Counter[str]
    took_s: float


async def run(folder: Path, store: ChaosStore, size: Size) -> Verdict:
    await store.start()
    code, said = await run_command("init", "--store", store.url, "--shards", "8")
    assert code == Exit.OK, said
    deaths = folder / "deaths"
    deaths.touch()  # noqa: ASYNC240 - a local file
    settings = [argument for each in size.settings for argument in ("--set", each)]
    scheduler = Node(
        "scheduler", command_line("scheduler", "--listen", "127.0.0.1:0", "--store", store.url), folder, {}
    )
    line = command_line("worker", "--handlers", "tests.chaos.culprit_handlers", "--store", store.url, *settings)
    workers = [Node(f"worker-{n}", line, folder, {VARIABLE: str(deaths)}) for n in range(size.workers)]
    nodes = [scheduler, *workers]
    watching = asyncio.ensure_future(_start_again(workers))
    try:
        scheduler.start()
        await until(lambda: "listens on" in scheduler.said(), "the scheduler listens")
        async with grpc.aio.insecure_channel(address_in(scheduler.said())) as channel:
            stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
            started_s = time.monotonic()
            await _create(stub, size)
            for worker in workers:
                worker.start()
            return await _judge(stub, store, workers, deaths, size, started_s)
    finally:
        watching.cancel()
        for node in nodes:
            node.kill()
        await store.close()


async def _start_again(workers: list[Node]) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        for worker in workers:
            if worker.wanted and not worker.is_running:
                worker.start()


async def _create(stub: SchedulerServiceStub, size: Size) -> None:
    requests = list(_actions(size, time.time_ns() // 1000))
    for n in range(0, len(requests), _BATCH):
        response = await stub.BatchCreateActions(BatchCreateActionsRequest(requests=requests[n : n + _BATCH]))
        refused = [result.error for result in response.results if result.HasField("error")]
        assert not refused, refused[0]


def _actions(size: Size, now_us: int) -> Iterator[CreateActionRequest]:
    for n in range(size.innocent):
        handler = "innocent-function" if n % 10 == 0 else "innocent"
        payload = b'{"takes_ms": %d}' % (n % 7 * 30)
        # Time enough: what waits on a loop that a culprit blocks goes on when it has ended.
        spec = _spec(handler, now_us + round(n / size.innocent * size.spread_s * SECOND_US), 3600, payload)
        yield _request(f"innocent-{n}", spec)
    soon_us = now_us + round(size.spread_s * SECOND_US / 3)
    yield _request("ends-the-process", _spec("ends-the-process", soon_us, 60))
    repeated = _spec("ends-the-process", soon_us + SECOND_US, 60)
    repeated.schedule.periodic.CopyFrom(Periodic(interval=duration(3600 * SECOND_US)))
    yield _request("ends-the-process-again-and-again", repeated)
    blocks = _spec("blocks-the-loop", soon_us, 3600, b'{"takes_ms": %d}' % size.blocked_ms)
    yield _request("blocks-the-loop", blocks)
    never = _spec("never-returns", soon_us, 3)
    never.retry.CopyFrom(RetryPolicy(max_attempts=2))
    yield _request("never-returns", never)
    for n in range(5):
        raises = _spec("raises-everything", soon_us, 60)
        raises.retry.CopyFrom(RetryPolicy(first_delay=duration(SECOND_US // 10), multiplier=1.0, max_attempts=30))
        yield _request(f"raises-everything-{n}", raises)


def _spec(handler: str, start_us: int, timeout_s: int, payload: bytes = b"{}") -> Spec:
    target = PythonHandler(name=handler, payload=payload, content_type="application/json")
    spec = Spec(handler=target, attempt_timeout=duration(timeout_s * SECOND_US))
    spec.schedule.start_time.FromMicroseconds(start_us)
    return spec


def _request(action_id: str, spec: Spec) -> CreateActionRequest:
    request = CreateActionRequest(action=ScheduledAction(spec=spec))
    request.action.meta.id = action_id
    return request


async def _judge(
    stub: SchedulerServiceStub, store: ChaosStore, workers: list[Node], deaths: Path, size: Size, started_s: float
) -> Verdict:
    def is_settled(actions: list[ScheduledAction]) -> bool:
        return all(action.status.state not in (action_pb2.SCHEDULED, action_pb2.RETRYING) for action in actions)

    actions = await _all(stub)
    while not is_settled(actions) and time.monotonic() - started_s < size.spread_s + size.within_s:
        await asyncio.sleep(1)
        actions = await _all(stub)
    took_s = time.monotonic() - started_s
    code, said = await run_command("audit", "--json", "--store", store.url)
    violations = [] if code == Exit.OK else [f"the audit ended with {code}: {said}"]
    violations += [text for action in actions for text in _wrong_with(action)]
    died = Counter(deaths.read_text().split())  # noqa: ASYNC240 - a local file
    violations += [f"{name} ended {count} processes" for name, count in died.items() if count > DEATHS_MAX]
    logs = "\n".join(worker.log.read_text(errors="replace") for worker in workers)
    blocked = [line for line in logs.splitlines() if "blocks the event loop" in line]
    if len(blocked) != 1 or "blocks-the-loop" not in blocked[0]:
        violations.append(f"what blocks the loop is named once, not in {blocked}")
    states = Counter(action_pb2.State.Name(action.status.state) for action in actions)
    return Verdict(violations, sum(died.values()), states, took_s)


async def _all(stub: SchedulerServiceStub) -> list[ScheduledAction]:
    actions: list[ScheduledAction] = []
    request = ListActionsRequest(page_size=1000)
    while True:
        response = await stub.ListActions(request)
        actions += response.actions
        if not response.next_page_token:
            return actions
        request.page_token = response.next_page_token


def _wrong_with(action: ScheduledAction) -> Iterator[str]:
    name, status = action.meta.id, action.status
    state = action_pb2.State.Name(status.state)
    if name.startswith(("innocent", "blocks-the-loop")):
        if status.state != action_pb2.SUCCEEDED:
            yield f"{name} is {state}: {status.reason} {status.counters}"
    elif name.startswith("ends-the-process"):
        if status.state != action_pb2.PAUSED or 'handler "ends-the-process"' not in status.reason:
            yield f"{name} is {state}: {status.reason}"
    elif status.state != action_pb2.FAILED or status.counters.interrupted_attempts > DEATHS_MAX:
        yield f"{name} is {state}: {status.reason} {status.counters}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.culprits", description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--innocent", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=600, help="how long everything may take (default 600)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clepsydra-culprits-") as name:
        folder = Path(name)
        store: ChaosStore = SqliteChaos(folder)
        if given.store == "postgres":
            store = PostgresChaos(folder, disk_can_fill=False)
        spread_s = given.seconds / 10
        size = Size(given.innocent, given.workers, spread_s, given.seconds - spread_s, blocked_ms=60_000)
        verdict = asyncio.run(run(folder, store, size))
    sys.stdout.write(
        f"{dict(verdict.states)} after {verdict.took_s:.0f} s and {verdict.deaths} deaths of workers; "
        f"{len(verdict.violations)} violations\n"
    )
    for violation in verdict.violations[:20]:
        sys.stdout.write(f"  {violation}\n")
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
