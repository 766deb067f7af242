"""A wire that can be cut: a TCP proxy that forwards, delays or loses answers, falls silent, or breaks connections."""

import asyncio
from contextlib import suppress
from enum import Enum

_CHUNK = 64 * 1024


class Mode(Enum):
    FORWARDING = "forwarding"
    # What the server answers arrives after `late_s`.
    LATE = "answering late"
    # What the server answers is lost: whoever asked cannot know what was done.
    LOSING_ANSWERS = "losing answers"
    # Nothing gets through, and nobody is told.
    SILENT = "silent"
    # Every connection is broken at once.
    REFUSING = "refusing"


class Proxy:
    """Listens on a free port of its own from `start` on; `upstream` may change or be unknown at any time."""

    def __init__(self, upstream: str | None = None) -> None:
        self.upstream = upstream
        self.address = ""
        self.late_s = 0.0
        self._mode = Mode.FORWARDING
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    def set(self, mode: Mode) -> None:
        """A stream of which a part was lost is broken for good, so every change of mode cuts, unless it loses more.

        Nothing is lost of answers that were late.
        """
        if mode is Mode.REFUSING or (mode is Mode.FORWARDING and self._mode is not Mode.LATE):
            self.cut()
        self._mode = mode

    def cut(self) -> int:
        """Break every connection as a dead network would, with a reset. Returns how many there were."""
        cut = len(self._connections)
        for task, writers in self._connections.items():
            for writer in writers:
                writer.transport.abort()
            task.cancel()
        return cut

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        writers = self._connections[task] = [writer]
        try:
            if self._mode is not Mode.REFUSING and self.upstream is not None:
                host, _, port = self.upstream.rpartition(":")
                answers, questions = await asyncio.open_connection(host, int(port))
                writers.append(questions)
                await self._forward(reader, questions, answers, writer)
        except (OSError, asyncio.CancelledError):
            # The other side is gone, or the connection was cut: both ends see it as reset.
            pass
        finally:
            for each in writers:
                each.transport.abort()
            del self._connections[task]

    async def _forward(
        self,
        asked: asyncio.StreamReader,
        questions: asyncio.StreamWriter,
        answered: asyncio.StreamReader,
        answers: asyncio.StreamWriter,
    ) -> None:
        """Both ways, until either side has ended."""
        pumps = [
            asyncio.ensure_future(self._pump(asked, questions, (Mode.SILENT,))),
            asyncio.ensure_future(self._pump(answered, answers, (Mode.SILENT, Mode.LOSING_ANSWERS), may_be_late=True)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await pump

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        lost_in: tuple[Mode, ...],
        may_be_late: bool = False,
    ) -> None:
        while chunk := await reader.read(_CHUNK):
            if may_be_late and self._mode is Mode.LATE:
                await asyncio.sleep(self.late_s)
            if self._mode not in lost_in:
                writer.write(chunk)
                await writer.drain()
