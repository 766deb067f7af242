"""Export and import: N actions out of one installation and into another on each store, killed twice on the way.

    python -m benchmarks.transfer [--actions 100000] [--stores sqlite,postgres,ydb] [--ydb-actions 2000]

The import is killed (SIGKILL) after a third and after two thirds of the actions, and each time the same command is run
again. At the end both installations must have equal sets of actions, and the audit must be clean. Prints the time and
the peak memory of the tools. YDB is the endpoint of the tests, which is slow: it shows that it works, not how fast.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import grpc

from benchmarks.installation import Installation, wait_until
from clepsydra.core.times import DAY_US, HOUR_US, SECOND_US, duration, timestamp
from clepsydra.v1 import action_pb2
from clepsydra.v1.action_pb2 import Meta, Periodic, PythonHandler, Schedule, ScheduledAction, Spec, Status
from clepsydra.v1.scheduler_pb2 import GetActionRequest, ImportActionRequest, ImportActionsRequest
from clepsydra.v1.scheduler_pb2_grpc import SchedulerServiceStub
from tests.postgres.server import running as running_postgres

_BATCH = 1000
_KILLS = 2
# What each installation chooses itself.
_OWN = ("guid", "etag", "revision", "update_time")


class Run(NamedTuple):
    """A tool that has ended, or was killed."""

    seconds: float
    peak_mib: float
    code: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--actions", type=int, default=100_000)
    parser.add_argument("--ydb-actions", type=int, default=2000, help="fewer, because the endpoint is slow")
    parser.add_argument("--stores", default="sqlite,postgres,ydb")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clepsydra-transfer-") as folder:
        for store in arguments.stores.split(","):
            count = arguments.ydb_actions if store == "ydb" else arguments.actions
            _transfer(store, count, Path(folder) / store)


def _transfer(store: str, count: int, folder: Path) -> None:
    with ExitStack() as stack:
        source = stack.enter_context(Installation(folder / "source"))
        address = source.scheduler()
        _fill(address, count)
        exported = folder / "exported.jsonl"
        export = _run(source, "export", str(exported), "--server", address)
        print(f"{store}: export of {count:,} actions: {export.seconds:.1f} s, peak {export.peak_mib:.0f} MiB")
        url = stack.enter_context(_STORES[store](folder))
        target = stack.enter_context(Installation(folder / "target", store=url))
        address = target.scheduler()
        imports = [_killed_import(target, exported, address, count * n // (_KILLS + 1)) for n in range(1, _KILLS + 1)]
        imports.append(_run(target, "import", str(exported), "--server", address, "--ended"))
        assert imports[-1].code == 0, "the last import fails"
        seconds, peak = sum(run.seconds for run in imports), max(run.peak_mib for run in imports)
        kills = sum(run.code == -signal.SIGKILL for run in imports)
        print(f"{store}: import, killed {kills} times and repeated: {seconds:.1f} s in all, peak {peak:.0f} MiB")
        again = folder / "again.jsonl"
        assert _run(target, "export", str(again), "--server", address).code == 0
        assert _digest(again) == _digest(exported), "the sets of actions differ"
        assert target.audit_is_clean()
        print(f"{store}: equal sets of {count:,} actions, audit clean")


def _fill(address: str, count: int) -> None:
    """Actions of every kind that moves: once, periodic, retrying, paused, ended; as an import takes them."""
    now_us = time.time_ns() // 1000
    with grpc.insecure_channel(address) as channel:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
        for start in range(0, count, _BATCH):
            numbers = range(start, min(start + _BATCH, count))
            requests = [ImportActionRequest(action=_action(number, now_us)) for number in numbers]
            answer = stub.ImportActions(ImportActionsRequest(requests=requests), timeout=60)
            assert not any(result.HasField("error") for result in answer.results)


def _id_of(number: int) -> str:
    return f"action-{number:08}"


def _action(number: int, now_us: int) -> ScheduledAction:
    at_us = now_us + DAY_US + number * SECOND_US
    action = ScheduledAction(
        meta=Meta(id=_id_of(number), labels={"team": "billing"}),
        spec=Spec(
            schedule=Schedule(start_time=timestamp(at_us)),
            handler=PythonHandler(name="remind", payload=b'{"user": %d}' % number, content_type="application/json"),
        ),
        status=Status(scheduled_time=timestamp(at_us), occurrence_time=timestamp(at_us)),
    )
    if number % 10 == 0:
        action.spec.schedule.periodic.CopyFrom(Periodic(interval=duration(HOUR_US)))
        action.status.counters.runs = number
    states = {1: action_pb2.RETRYING, 2: action_pb2.PAUSED, 3: action_pb2.SUCCEEDED}
    action.status.state = states.get(number % 100, action_pb2.SCHEDULED)
    if number % 100 == 1:
        action.status.occurrence.failed_attempts = 3
    return action


def _killed_import(target: Installation, file: Path, address: str, after: int) -> Run:
    """Kill the import when the action with this number has arrived; the file is in the order of numbers."""
    started = time.perf_counter()
    process = _start(target, "import", str(file), "--server", address, "--ended")
    with grpc.insecure_channel(address) as channel:
        stub = SchedulerServiceStub(channel)  # type: ignore[no-untyped-call]
        wait_until(lambda: _has_ended(process) or _exists(stub, _id_of(after)), pause_s=0.02)
    os.kill(process.pid, signal.SIGKILL)
    return _ended(process, started)


def _exists(stub: SchedulerServiceStub, action_id: str) -> bool:
    try:
        stub.GetAction(GetActionRequest(id=action_id), timeout=10)
    except grpc.RpcError:
        return False
    return True


def _has_ended(process: "subprocess.Popen[bytes]") -> bool:
    """Without taking note of its end, as `poll` would: what it used is asked for later."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _run(installation: Installation, *arguments: str) -> Run:
    started = time.perf_counter()
    return _ended(_start(installation, *arguments), started)


def _start(installation: Installation, *arguments: str) -> "subprocess.Popen[bytes]":
    line = installation.line(*arguments)
    return subprocess.Popen(line, env=installation.environment(), stdout=subprocess.DEVNULL, stderr=sys.stderr)


def _ended(process: "subprocess.Popen[bytes]", started: float) -> Run:
    """Wait for its end; the kernel knows how much memory it had at most."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(time.perf_counter() - started, usage.ru_maxrss / 1024, process.returncode)


def _digest(file: Path) -> tuple[int, int]:
    """A fingerprint of a set of actions, whatever their order: each store lists them in an order of its own."""
    total = count = 0
    with file.open("rb") as lines:
        for line in lines:
            action = json.loads(line)
            for name in _OWN:
                action["meta"].pop(name, None)
            text = json.dumps(action, sort_keys=True).encode()
            total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest())
            count += 1
    return count, total


@contextmanager
def _sqlite(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder / 'target.db'}"


@contextmanager
def _postgres(_folder: Path) -> Iterator[str]:
    with running_postgres() as server:
        yield server.url


@contextmanager
def _ydb(_folder: Path) -> Iterator[str]:
    line = [sys.executable, "-m", "tests.ydb_endpoint", "--port", "0"]
    endpoint = subprocess.Popen(line, cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE)
    output: IO[bytes] | None = endpoint.stdout
    assert output is not None
    try:
        yield f"ydb://127.0.0.1:{int(output.readline())}/local?path=timers"
    finally:
        endpoint.terminate()
        endpoint.wait()
        output.close()


_STORES = {"sqlite": _sqlite, "postgres": _postgres, "ydb": _ydb}

if __name__ == "__main__":
    main()
