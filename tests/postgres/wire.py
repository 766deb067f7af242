"""A proxy between a store and its server, which counts round trips and breaks connections.

It understands two parts of the protocol: where a message ends, and which statement is executed.
"""

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from enum import Enum
from urllib.parse import urlsplit

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
# The client waits for a response after each of these: Flush, Sync, a simple query, a password, Terminate.
_ENDS_A_REQUEST = b"HSQpX"


class Loss(Enum):
    """What is lost: the statement, before it reaches the server, or the response, before it reaches the store."""

    REQUEST = "request"
    RESPONSE = "response"


class Wire:
    """`change_startup` returns the startup packet to send instead, and a response in place of the server's, if any.

    With `drops_notifications`, no notification reaches the store.
    """

    def __init__(
        self,
        server_url: str,
        tls: ssl.SSLContext | None = None,
        change_startup: Callable[[bytes], tuple[bytes, bytes]] | None = None,
        *,
        drops_notifications: bool = False,
    ) -> None:
        parts = urlsplit(server_url)
        self._upstream = (parts.hostname, parts.port)
        self._server_url = server_url
        self._tls = tls
        self._change_startup = change_startup or (lambda startup: (startup, b""))
        self.drops_notifications = drops_notifications
        self._losses: list[tuple[str, Loss]] = []
        self._links: set[_Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        # How often a client waited for a response, over all connections.
        self.round_trips = 0
        # How many connections used TLS.
        self.encrypted = 0
        self.lost = asyncio.Event()

    @property
    def url(self) -> str:
        return self._server_url.replace(f"{self._upstream[0]}:{self._upstream[1]}", f"127.0.0.1:{self.port}")

    def lose(self, statement: str, what: Loss) -> None:
        """Lose the next execution of this statement, and the connection with it."""
        self.lost.clear()
        self._losses.append((statement, what))

    def cut(self) -> None:
        """Break every connection."""
        for link in list(self._links):
            link.close()

    def loss_of(self, statement: str | None) -> Loss | None:
        for planned in self._losses:
            if planned[0] == statement:
                self._losses.remove(planned)
                self.lost.set()
                return planned[1]
        return None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        link = _Link(self, reader, writer)
        self._links.add(link)
        try:
            # When one of the two ends closes, the other is closed too.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await link.forward(self._upstream, self._tls, self._change_startup)
        finally:
            self._links.discard(link)
            await link.closed()
            self._serving.discard(task)

    async def end(self) -> None:
        """Close every connection; one on which TLS was refused would never close by itself."""
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


@contextlib.asynccontextmanager
async def open_wire(wire: Wire) -> AsyncIterator[Wire]:
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        await wire.end()


class _Link:
    """One connection through the wire."""

    def __init__(self, wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._wire = wire
        self._client = (reader, writer)
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._texts: dict[bytes, str] = {}
        self._loses_response = False

    async def forward(
        self,
        upstream: tuple[str | None, int | None],
        tls: ssl.SSLContext | None,
        change_startup: Callable[[bytes], tuple[bytes, bytes]],
    ) -> None:
        reader, writer = self._client
        startup = await _packet(reader)
        if startup == _SSL_REQUEST:
            writer.write(b"S" if tls else b"N")
            if tls:
                await writer.start_tls(tls)
                self._wire.encrypted += 1
            startup = await _packet(reader)
        startup, response = change_startup(startup)
        if response:
            writer.write(response)
            await writer.drain()
            return
        self._server = await asyncio.open_connection(*upstream)
        self._server[1].write(startup)
        responses = asyncio.create_task(self._forward_responses())
        try:
            await self._forward_requests()
        finally:
            self.close()
            responses.cancel()
            await asyncio.gather(responses, return_exceptions=True)

    def close(self) -> None:
        for end in (self._client, self._server):
            if end is not None:
                end[1].close()

    async def closed(self) -> None:
        self.close()
        for end in (self._client, self._server):
            if end is not None:
                # It does not matter how it ended.
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(0.5):
                        await end[1].wait_closed()
                end[1].transport.abort()

    async def _forward_requests(self) -> None:
        assert self._server is not None
        request, executed = b"", None
        while True:
            message = await _message(self._client[0])
            request += message
            executed = self._note(message) or executed
            if message[:1] not in _ENDS_A_REQUEST:
                continue
            self._wire.round_trips += 1
            loss = self._wire.loss_of(executed)
            if loss is Loss.REQUEST:
                return
            self._loses_response = loss is Loss.RESPONSE
            self._server[1].write(request)
            request, executed = b"", None

    def _note(self, message: bytes) -> str | None:
        """The statement that a message executes. A Parse gives a statement its name, and a Bind refers to it."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._texts[name] = text.decode()
        elif kind == b"B":
            _portal, name, _ = body.split(b"\0", 2)
            return self._texts.get(name)
        return None

    async def _forward_responses(self) -> None:
        assert self._server is not None
        try:
            while True:
                message = await _message(self._server[0])
                if self._wire.drops_notifications and message[:1] == b"A":
                    continue
                if not self._loses_response:
                    self._client[1].write(message)
                elif message[:1] == b"Z":
                    # The statement is committed: now the connection breaks.
                    return
        finally:
            self.close()


async def _packet(reader: asyncio.StreamReader) -> bytes:
    """A packet without a type, as the first one is."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("!i", length)[0] - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(1) + await _packet(reader)
