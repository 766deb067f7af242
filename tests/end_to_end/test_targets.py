"""Targets from the flags of `add` to the request, the call or the log line."""

import asyncio
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.end_to_end.conftest import Command, StartUp
from tests.end_to_end.processes import TIMEOUT_S

_HANDLERS = """
from pydantic import BaseModel

from clepsydra.worker import Context, DoNotRetry, RetryAfter, handler


class Order(BaseModel):
    number: int


@handler("invoice")
async def invoice(order: Order, context: Context) -> None:
    with open("invoices.txt", "a") as file:
        file.write(f"{order.number} {context.action_id} {context.attempt_number}\\n")
    if context.attempt_number == 1:
        raise RetryAfter(0.01, "not yet")


@handler("hopeless")
def hopeless(payload: bytes) -> None:
    raise DoNotRetry(f"nothing can be done about {payload.decode()}")
"""


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Target:
    """An HTTP server that keeps the requests, and answers with these statuses one after the other."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[Received] = asyncio.Queue()
        self.statuses: list[int] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.received.put_nowait(Received(request.method, request.path_qs, dict(request.headers), body))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    async def next(self) -> Received:
        async with asyncio.timeout(TIMEOUT_S):
            return await self.received.get()


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    made = Target()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    async with TestServer(app, host="127.0.0.1") as server:
        made.url = str(server.make_url("/"))
        yield made


async def test_an_http_request_arrives_with_its_context(start_up: StartUp, command: Command, target: Target) -> None:
    up = start_up()
    target.statuses = [503]
    flags = ["--header", "X-Team: billing", "--body", '{"n": 1}', "--retry-delay", "10ms"]
    added = command("add", "call", "--http", target.url + "hook?a=b", *flags, "--server", up.address, "--json").json()

    first, second = await target.next(), await target.next()
    assert first.method == "POST"
    assert first.path == "/hook?a=b"
    assert first.body == b'{"n": 1}'
    assert first.headers["X-Team"] == "billing"
    assert first.headers["Clepsydra-Action-Id"] == "call"
    assert first.headers["Clepsydra-Attempt-Number"] == "1"
    assert first.headers["Clepsydra-Scheduled-Time"] == added["status"]["scheduled_time"]

    assert second.headers["Clepsydra-Attempt-Number"] == "2"
    assert second.headers["Clepsydra-Attempt-Id"] != first.headers["Clepsydra-Attempt-Id"]
    assert second.headers["Idempotency-Key"] == first.headers["Idempotency-Key"] != ""
    assert up.stop() == 0


async def test_each_run_of_a_periodic_request_has_another_key(
    start_up: StartUp, command: Command, target: Target
) -> None:
    up = start_up()
    command("add", "beat", "--every", "100ms", "--max-runs", "3", "--http", target.url, "--server", up.address)
    keys = [(await target.next()).headers["Idempotency-Key"] for _ in range(3)]
    assert len(set(keys)) == 3


def test_python_handlers_are_found_and_called(start_up: StartUp, command: Command, tmp_path: Path) -> None:
    (tmp_path / "app_handlers.py").write_text(_HANDLERS)
    up = start_up("--handlers", "app_handlers", "--name", "invoicing")
    up.wait_for_event("handlers are registered", handlers=["hopeless", "invoice"])

    to_json = ["--content-type", "application/json", "--server", up.address]
    command("add", "order-7", "--handler", "invoice", "--payload", '{"number": 7}', *to_json)
    command("add", "order-8", "--handler", "hopeless", "--payload", "order 8", "--server", up.address)
    failed = up.wait_for_event("an attempt failed", action="order-8")
    assert failed["error"] == "nothing can be done about order 8"
    up.wait_for_event("an attempt failed", action="order-7")

    # A stopping worker finishes its attempts.
    assert up.stop() == 0
    assert (tmp_path / "invoices.txt").read_text().splitlines()[0] == "7 order-7 1"


def test_a_missing_handler_fails_the_attempt(start_up: StartUp, command: Command) -> None:
    up = start_up("--name", "w1")
    command("add", "lost", "--handler", "nobody", "--max-attempts", "1", "--server", up.address)
    failed = up.wait_for_event("an attempt failed", action="lost")
    assert failed["error"].startswith('no handler named "nobody" is registered on worker w1')


def test_a_server_raises_its_limit_of_open_files(start_up: StartUp) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
    try:
        running = start_up()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert psutil.Process(running.pid).rlimit(psutil.RLIMIT_NOFILE) == (hard, hard)
