"""Real servers on free ports: well-behaved ones, and ones that say whatever bytes a test wants."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web
from aiohttp.test_utils import TestServer

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Servers:
    def __init__(self) -> None:
        self._opened = AsyncExitStack()

    async def close(self) -> None:
        await self._opened.aclose()

    async def answering(self, answer: Answer) -> str:
        """The URL of a server that answers every request like this."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        server = TestServer(app, host="127.0.0.1")
        await server.start_server()
        self._opened.push_async_callback(server.close)
        return str(server.make_url("/"))

    async def refusing(self, status: int, body: str = "", **headers: str) -> str:
        """The URL of a server that gives every request this status."""

        async def answer(_request: web.Request) -> web.Response:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=body, headers=named)

        return await self.answering(answer)

    async def talking(self, talk: Talk, tls: ssl.SSLContext | None = None) -> str:
        """The URL of a server that talks like this, after it has read a request's headers."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                await talk(reader, writer)
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        self._opened.callback(server.close)
        host, port = server.sockets[0].getsockname()
        return f"{'https' if tls else 'http'}://{host}:{port}/"

    async def saying(self, answer: bytes) -> str:
        """The URL of a server that answers every request with these bytes, and closes."""

        async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            await writer.drain()

        return await self.talking(talk)
