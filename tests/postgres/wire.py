"""A wire between a store and its server, which can be listened to and cut.

It understands the protocol as far as it needs to: where a message ends, and which statement is executed.
"""

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from enum import Enum
from urllib.parse import urlsplit

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
# The client waits for an answer after each of these: Flush, Sync, a simple query, a password, Terminate.
_ENDS_A_REQUEST = b"HSQpX"


class Loss(Enum):
    """What becomes of a statement: it never reaches the server, or its answer never reaches the store."""

    OF_REQUEST = "request"
    OF_REPLY = "reply"


class Wire:
    """Where `change_startup` is given, it makes the startup packet another one, or an answer in the server's place.

    A deaf one lets no notification through.
    """

    def __init__(
        self,
        server_url: str,
        tls: ssl.SSLContext | None = None,
        change_startup: Callable[[bytes], tuple[bytes, bytes]] | None = None,
        *,
        deaf: bool = False,
    ) -> None:
        parts = urlsplit(server_url)
        self._upstream = (parts.hostname, parts.port)
        self._server_url = server_url
        self._tls = tls
        self._change_startup = change_startup or (lambda startup: (startup, b""))
        self.deaf = deaf
        self._losses: list[tuple[str, Loss]] = []
        self._links: set[_Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self.port = 0
        # How often a client waited for an answer, in all.
        self.round_trips = 0
        # How many connections spoke TLS.
        self.encrypted = 0
        self.lost = asyncio.Event()

    @property
    def url(self) -> str:
        return self._server_url.replace(f"{self._upstream[0]}:{self._upstream[1]}", f"127.0.0.1:{self.port}")

    def lose(self, statement: str, what: Loss) -> None:
        """Lose the next execution of this text, and the connection with it."""
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
            # When one of the two ends goes, the other is let go of too.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await link.carry(self._upstream, self._tls, self._change_startup)
        finally:
            self._links.discard(link)
            await link.closed()
            self._serving.discard(task)

    async def end(self) -> None:
        """End every connection; one that TLS was refused on would never end by itself."""
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


@contextlib.asynccontextmanager
async def laid(wire: Wire) -> AsyncIterator[Wire]:
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
        self._loses_reply = False

    async def carry(
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
        startup, answer = change_startup(startup)
        if answer:
            writer.write(answer)
            await writer.drain()
            return
        self._server = await asyncio.open_connection(*upstream)
        self._server[1].write(startup)
        back = asyncio.create_task(self._carry_back())
        try:
            await self._carry_forth()
        finally:
            self.close()
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)

    def close(self) -> None:
        for end in (self._client, self._server):
            if end is not None:
                end[1].close()

    async def closed(self) -> None:
        self.close()
        for end in (self._client, self._server):
            if end is not None:
                # How it ended is of no interest any more.
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(0.5):
                        await end[1].wait_closed()
                end[1].transport.abort()

    async def _carry_forth(self) -> None:
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
            if loss is Loss.OF_REQUEST:
                return
            self._loses_reply = loss is Loss.OF_REPLY
            self._server[1].write(request)
            request, executed = b"", None

    def _note(self, message: bytes) -> str | None:
        """The text of the statement that a message executes; a Parse gives a text a name, a Bind names it."""
        kind, body = message[:1], message[5:]
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._texts[name] = text.decode()
        elif kind == b"B":
            _portal, name, _ = body.split(b"\0", 2)
            return self._texts.get(name)
        return None

    async def _carry_back(self) -> None:
        assert self._server is not None
        try:
            while True:
                message = await _message(self._server[0])
                if self._wire.deaf and message[:1] == b"A":
                    continue
                if not self._loses_reply:
                    self._client[1].write(message)
                elif message[:1] == b"Z":
                    # It is done, and committed: now the connection breaks.
                    return
        finally:
            self.close()


async def _packet(reader: asyncio.StreamReader) -> bytes:
    """A packet as it is sent at the start: without a type."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("!i", length)[0] - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(1) + await _packet(reader)
