"""The installed command on a `ydb://` URL, with the endpoint in a process of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import TIMEOUT_S, Process, Result, Up, clepsydra, eventually

ROOT = Path(__file__).parents[2]
ACTIONS = 150


@pytest.fixture
def store() -> Iterator[str]:
    """The URL of an installation on an endpoint of its own."""
    endpoint = subprocess.Popen(
        [sys.executable, "-m", "tests.ydb_endpoint", "--port", "0", "--trouble", "0.05"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert endpoint.stdout is not None
    port = int(endpoint.stdout.readline())
    yield f"ydb://127.0.0.1:{port}/local?path=timers"
    endpoint.terminate()
    endpoint.wait(TIMEOUT_S)
    endpoint.stdout.close()


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path, store: str) -> Iterator[Start]:
    """Starts `clepsydra` with these arguments on the store, and stops it when the test ends."""
    processes: list[Process] = []

    def start_process(*arguments: str) -> Process:
        process = Process([*arguments, "--store", store], tmp_path)
        processes.append(process)
        return process

    yield start_process
    for process in processes:
        process.kill()


Command = Callable[..., Result]


@pytest.fixture
def command(tmp_path: Path, store: str) -> Command:
    return lambda *arguments: clepsydra(*arguments, folder=tmp_path, CLEPSYDRA_STORE=store)


def test_up_makes_the_store_and_the_first_action_fires(store: str, tmp_path: Path, command: Command) -> None:
    up = Up(tmp_path, "--store", store)
    try:
        up.wait_until_ready()
        added = command("add", "hello", "--in", "300ms", "--log", "hello", "--server", up.address)
        assert (added.code, added.err) == (0, "")
        fired = up.wait_for_event("hello", action_id="hello")
        assert fired["timestamp"] > fired["scheduled_time"]
        assert up.stop() == 0
    finally:
        up.kill()
    audit = command("audit")
    assert (audit.code, audit.err) == (0, "")
    assert audit.out.startswith("No violation: 1 actions")


def test_init_can_be_run_again_and_does_not_change_the_number_of_shards(command: Command) -> None:
    for _ in range(2):
        done = command("init", "--shards", "4")
        assert (done.code, done.err) == (0, "")
        assert "with 4 shards" in done.out
    assert command("init").code == 0
    refused = command("init", "--shards", "5")
    assert refused.code != 0
    assert "has 4 shards, not 5" in refused.err


def test_a_scheduler_and_two_workers_of_which_one_is_killed(start: Start, command: Command, tmp_path: Path) -> None:
    assert command("init", "--shards", "4").code == 0
    scheduler = start("scheduler", "--listen", "127.0.0.1:0")
    address = scheduler.wait_for_out("listens on").partition(" listens on ")[2].partition(",")[0]
    fast = ["--set", "worker.lease_ms=3000", "--set", "worker.lock_life_ms=2000", "--set", "worker.heartbeat_ms=500"]
    workers = [start("worker", "--name", f"w{n}", *fast) for n in range(2)]
    for worker in workers:
        worker.wait_for_event("the worker has started")

    actions = tmp_path / "actions.jsonl"
    specs = [
        {"meta": {"id": f"a{n:03}"}, "spec": {"schedule": {"delay": f"0.{n % 10}s"}, "log": {"message": "tick"}}}
        for n in range(ACTIONS)
    ]
    actions.write_text("".join(f"{json.dumps(spec)}\n" for spec in specs))
    added = command("add", "--from-file", str(actions), "--server", address)
    assert (added.code, added.err) == (0, "")
    workers[0].send(signal.SIGKILL)
    workers[0].ended()
    assert command("audit").code == 0

    def states() -> set[str]:
        listed = command("list", "--json", "--server", address)
        return {json.loads(line)["status"]["state"] for line in listed.out.splitlines()}

    eventually(states, lambda seen: seen == {"SUCCEEDED"})
    audit = command("audit", "--json").json()
    assert (audit["ok"], audit["actions"], audit["live_rows"]) == (True, ACTIONS, ACTIONS)
    locks = command("locks", "--json").json()
    assert [lock["shard"] for lock in locks] == [0, 1, 2, 3]
    assert command("stats", "--json").json()["actions"] == ACTIONS
    assert workers[1].stop() == 0
    assert scheduler.stop() == 0


@pytest.mark.parametrize("name", ["stats", "worker"])
def test_a_store_that_was_never_made_is_refused_with_a_sentence(name: str, command: Command) -> None:
    refused = command(name)
    assert refused.code == 5
    assert "there is no store at grpc://127.0.0.1:" in refused.err
    assert refused.err.count("\n") == 1


def test_the_benchmark_runs_and_says_that_its_figures_mean_nothing_here() -> None:
    sizes = ["--rounds", "1", "--actions", "40", "--shards", "2", "--only", "drain by one"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ydb", *sizes], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "executed/s, 1 worker" in done.stdout
    assert "Every audit was clean." in done.stdout
    assert "not YDB: these figures mean nothing" in done.stdout


def test_a_server_that_is_not_there_is_reported_with_a_sentence(tmp_path: Path) -> None:
    refused = clepsydra("stats", "--store", "ydb://127.0.0.1:1/local", folder=tmp_path)
    assert refused.code == 5
    assert "no YDB answers at grpc://127.0.0.1:1;" in refused.err
    assert refused.err.count("\n") == 1
