"""A TCP proxy in front of the server. It can break all connections, as the crash of a machine does."""

import asyncio
import socket
import struct


class TcpProxy:
    """Forwards bytes in both directions."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self, target_port: int, host: str = "127.0.0.1", port: int = 0) -> None:
        self._target_port = target_port
        self._server = await asyncio.start_server(self._forward, host, port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset every connection; bytes in flight are lost."""
        for writer in list(self._writers):
            raw = writer.get_extra_info("socket")
            if raw is not None and writer.transport is not None and not writer.transport.is_closing():
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self.cut()
            if self._tasks:
                await asyncio.wait(self._tasks)
            await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._writers.add(far)
            there, back = asyncio.create_task(_copy(reader, far)), asyncio.create_task(_copy(far_reader, writer))
            await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            writer.transport.abort()
            far.transport.abort()
            await asyncio.wait([there, back])
        finally:
            for end in (writer, far):
                if end is not None:
                    end.transport.abort()
                    self._writers.discard(end)
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(256 * 1024):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        # The connection was reset: the other direction ends too.
        return
