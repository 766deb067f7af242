"""Names that no name server answers for hold up nobody: they are asked for in the event loop, and not in threads."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
from aiohttp import web
from aiohttp.resolver import AsyncResolver

from clepsydra.core.action.attempt import SUCCESS
from clepsydra.worker.targets import Targets, http
from tests.worker.targets.executing import LIMIT_S, cancelled, execute, executing
from tests.worker.targets.executing import http as request
from tests.worker.targets.serving import Servers

NAMES = 200


class _Silent(asyncio.DatagramProtocol):
    """A name server that takes questions and never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    def datagram_received(self, _data: bytes, _address: object) -> None:
        self.asked.set()


@pytest.fixture
async def name_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[_Silent]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_datagram_endpoint(_Silent, ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    asking = partial(AsyncResolver, nameservers=["127.0.0.1"], udp_port=port)
    monkeypatch.setattr(http, "AsyncResolver", asking)
    yield protocol
    transport.close()


async def test_a_name_that_is_known_is_called_while_many_others_are_not_answered(
    name_server: _Silent, targets: Targets, servers: Servers
) -> None:
    dead = [executing(targets, request(f"http://dead-{n}.example.org/")) for n in range(NAMES)]
    async with asyncio.timeout(LIMIT_S):
        await name_server.asked.wait()

    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    url = await servers.answering(answer)
    async with asyncio.timeout(LIMIT_S):
        assert await execute(targets, request(url.replace("127.0.0.1", "localhost"))) == SUCCESS
    assert not any(task.done() for task in dead)
    for task in dead:
        assert await cancelled(task)
