"""One tenant's servers are silent and its names are dead: all that another tenant asks for is done meanwhile.

`python -m benchmarks.tenants` measures how late, with thousands of them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

import pytest
from aiohttp import web

from clepsydra.core.times import duration
from clepsydra.v1.action_pb2 import HttpRequest, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest
from tests.chaos.action import HOLD_TIMEOUT_US, Actor, quick
from tests.chaos.caller import Caller
from tests.chaos.conftest import StartWorld
from tests.chaos.history import Outcome
from tests.chaos.tenant_handlers import VARIABLE
from tests.chaos.until import until
from tests.chaos.world import SETTINGS
from tests.worker.targets.serving import Servers

# Room for fewer than there are requests without an answer, and for all of the other tenant's.
_SETTINGS = {
    **SETTINGS,
    "worker.attempts": 200,
    "worker.http_connections": 160,
    "worker.http_connections_per_host": 20,
    "worker.handler_attempts": 100,
}
_TO_ONE_HOST = 300
_SILENT_HOSTS = 150
# Fewer than may wait for an answer at once, so that servers are asked too.
_DEAD_NAMES = 60
_OTHERS = 40


class _NameServer(asyncio.DatagramProtocol):
    """Takes questions and never answers."""

    questions = 0

    def datagram_received(self, data: bytes, addr: object) -> None:
        del data, addr
        self.questions += 1


class Silence(NamedTuple):
    """Servers that accept requests and never answer, on every address of this machine, and such a name server."""

    port: int
    requests: list[bytes]
    names_port: int
    names: _NameServer


@pytest.fixture
async def silence() -> AsyncIterator[Silence]:
    requests: list[bytes] = []

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while heard := await reader.read(2**16):
                requests.append(heard)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(never_answer, "0.0.0.0", 0, backlog=1024)  # noqa: S104 - all of 127.0.0.0/8
    loop = asyncio.get_running_loop()
    transport, names = await loop.create_datagram_endpoint(_NameServer, ("127.0.0.1", 0))
    names_port = transport.get_extra_info("sockname")[1]
    yield Silence(server.sockets[0].getsockname()[1], requests, names_port, names)
    transport.close()
    server.close()


@pytest.fixture
async def good_url() -> AsyncIterator[str]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    servers = Servers()
    yield await servers.answering(answer)
    await servers.close()


def _silent_urls(port: int) -> Iterator[str]:
    for n in range(_TO_ONE_HOST):
        yield f"http://127.0.0.1:{port}/{n}"
    for n in range(_SILENT_HOSTS):
        yield f"http://127.1.0.{n + 1}:{port}/"


def _request(url: str) -> Spec:
    return Spec(http=HttpRequest(url=url))


async def _create(caller: Caller, prefix: str, specs: list[Spec]) -> None:
    requests = [
        CreateActionRequest(action=ScheduledAction(meta={"id": f"{prefix}-{n}"}, spec=spec), request_id=f"{prefix}-{n}")
        for n, spec in enumerate(specs)
    ]
    for request in requests:
        request.action.spec.attempt_timeout.CopyFrom(duration(HOLD_TIMEOUT_US))
    answers = await caller.call_batch("BatchCreateActions", BatchCreateActionsRequest, requests)
    assert {answer.outcome for answer, _ in answers} == {Outcome.OK}


async def test_silent_servers_and_dead_names_hold_up_nobody_else(
    start_world: StartWorld, call_at: Callable[[str], Caller], silence: Silence, good_url: str
) -> None:
    world = await start_world(
        workers=1,
        settings=_SETTINGS,
        handlers="tests.chaos.tenant_handlers",
        variables={VARIABLE: str(silence.names_port)},
    )
    caller = call_at(world.server)
    actor = Actor(world, caller)
    await _create(caller, "dead", [_request(f"http://dead-{n}.example.org/") for n in range(_DEAD_NAMES)])
    await until(lambda: silence.names.questions > 0, "the name server is asked")
    await _create(caller, "silent", [_request(url) for url in _silent_urls(silence.port)])
    await until(lambda: bool(silence.requests), "silent servers are asked")
    others = [_request(good_url), _request(good_url.replace("127.0.0.1", "localhost")), Spec(handler=quick())]
    await _create(caller, "other", [others[n % len(others)] for n in range(_OTHERS)])

    async def states(prefix: str) -> list[str]:
        return [entry.state for name, entry in (await actor.entries()).items() if name.startswith(prefix)]

    async def others_have_succeeded() -> bool:
        return await states("other-") == ["SUCCEEDED"] * _OTHERS

    await until(others_have_succeeded, "all that the other tenant asked for is done")
    # None has ended: a timeout of an hour is not over, and a name that nobody answers for is asked for again.
    assert set(await states("silent-")) == {"SCHEDULED"}
    assert set(await states("dead-")) <= {"SCHEDULED", "RETRYING"}
    assert world.defects() == []
