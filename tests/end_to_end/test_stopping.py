"""How servers end: the first signal lets running work finish, a second one ends at once, a failure is one sentence."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.end_to_end.conftest import Command, Start, StartUp
from tests.end_to_end.processes import TIMEOUT_S, Up, address_in, eventually


class SlowTarget:
    """An HTTP server that answers when the test sets `may_answer`."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.url = ""

    async def answer(self, _request: web.Request) -> web.Response:
        self.called.set()
        await self.may_answer.wait()
        return web.Response()

    async def wait_until_called(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self.called.wait()


@pytest.fixture
async def slow() -> AsyncIterator[SlowTarget]:
    made = SlowTarget()
    app = web.Application()
    app.router.add_get("/", made.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        made.url = str(server.make_url("/"))
        yield made
        made.may_answer.set()


async def _with_an_attempt_in_flight(start_up: StartUp, command: Command, slow: SlowTarget) -> Up:
    up = start_up()
    command("add", "slow", "--http", slow.url, "--server", up.address)
    await slow.wait_until_called()
    return up


async def test_a_signal_lets_attempts_finish(start_up: StartUp, command: Command, slow: SlowTarget) -> None:
    up = await _with_an_attempt_in_flight(start_up, command, slow)
    up.send(signal.SIGTERM)
    await asyncio.to_thread(up.wait_for_event, "stopping: running work is finished first; a second signal ends at once")
    slow.may_answer.set()
    assert await asyncio.to_thread(up.ended) == 0

    stopped = up.wait_for_event("the worker has stopped")
    assert (stopped["begun"], stopped["succeeded"]) == (1, 1)
    locks = await asyncio.to_thread(command, "locks", "--json", "--store", up.store)
    assert {shard["state"] for shard in locks.json()} == {"free"}


async def test_an_attempt_beyond_the_drain_limit_is_interrupted(
    start_up: StartUp, command: Command, slow: SlowTarget
) -> None:
    up = start_up(CLEPSYDRA_WORKER_DRAIN_MS="50")
    command("add", "slow", "--http", slow.url, "--server", up.address)
    await slow.wait_until_called()
    up.send(signal.SIGINT)
    assert await asyncio.to_thread(up.ended) == 0
    assert up.wait_for_event("the worker has stopped")["interrupted"] == 1


@pytest.mark.parametrize(("second", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_second_signal_ends_at_once(
    start_up: StartUp, command: Command, slow: SlowTarget, second: signal.Signals, code: int
) -> None:
    up = await _with_an_attempt_in_flight(start_up, command, slow)
    up.send(signal.SIGTERM)
    await asyncio.to_thread(up.wait_for_event, "stopping: running work is finished first; a second signal ends at once")
    up.send(second)
    assert await asyncio.to_thread(up.ended) == code
    assert not any("the worker has stopped" in line for line in up.err)


def test_a_port_that_is_taken(start_up: StartUp, start: Start) -> None:
    address = start_up().address
    for server in ("up", "scheduler"):
        second = start(server, "--listen", address)
        assert second.ended() == 5
        sentences = [line for line in second.err if line.startswith("clepsydra: ")]
        assert len(sentences) == 1
        assert sentences[0] == (
            f"clepsydra: cannot listen on {address}: another process listens there already; stop it, or choose another "
            "address with --listen (Address already in use)"
        )
        assert not any("worker" in line for line in second.err), "no worker was started"


def test_up_on_a_port_that_is_taken_makes_no_store(start_up: StartUp, start: Start, tmp_path: Path) -> None:
    second = start("up", "--listen", start_up().address, "--store", "sqlite:///second.db")
    assert second.ended() == 5
    assert not (tmp_path / "second.db").exists()


@pytest.mark.parametrize(
    ("listen", "reason"),
    [
        ("192.0.2.1:7070", "this machine has no such address (Cannot assign requested address)"),
        ("no-such-host.invalid:7070", "the host 'no-such-host.invalid' is unknown ("),
    ],
)
def test_why_an_address_cannot_be_listened_on(start: Start, command: Command, listen: str, reason: str) -> None:
    command("init")
    for server in (["up"], ["scheduler"], ["scheduler", "--processes", "2"]):
        failed = start(*server, "--listen", listen)
        assert failed.ended() == 5
        assert failed.err[-1].startswith(f"clepsydra: cannot listen on {listen}: {reason}")


def test_scheduler_and_worker_as_processes_of_their_own(start: Start, command: Command) -> None:
    assert command("init", "--shards", "3").out == "The store sqlite:///clepsydra.db is ready, with 3 shards.\n"
    scheduler = start("scheduler", "--listen", "127.0.0.1:0")
    workers = [start("worker", "--name", f"w{n}", "--set", "worker.loops=1") for n in range(2)]
    address = address_in(scheduler.wait_for_out("listens on"))
    for worker in workers:
        worker.wait_for_event("the worker has started", loops=1, shards=3)

    for n in range(6):
        command("add", f"a{n}", "--log", "ran", "--server", address)

    def states() -> list[str]:
        listed = command("list", "--json", "--server", address).out.splitlines()
        return [json.loads(line)["status"]["state"] for line in listed]

    eventually(states, lambda seen: seen == ["SUCCEEDED"] * 6)
    everything = [*workers, scheduler]
    assert [process.stop() for process in everything] == [0, 0, 0]
    assert command("audit").code == 0
    assert {shard["state"] for shard in command("locks", "--json").json()} == {"free"}
