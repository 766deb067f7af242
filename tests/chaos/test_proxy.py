"""The wire itself: a fault that did not happen would prove nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tests.chaos.proxy import Mode, Proxy
from tests.chaos.until import until


class Echo:
    """A server that answers with what it hears, and remembers it."""

    def __init__(self) -> None:
        self.heard = b""
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(100):
                self.heard += chunk
                writer.write(chunk)
        except ConnectionError:
            # A cut wire resets this end too.
            pass
        finally:
            writer.close()

    def has_heard(self, said: bytes) -> Callable[[], bool]:
        return lambda: self.heard == said


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    echo = Echo()
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    echo.address = f"{host}:{port}"
    yield echo
    server.close()


@pytest.fixture
async def wire(echo: Echo) -> AsyncIterator[Proxy]:
    wire = Proxy(echo.address)
    await wire.start()
    yield wire
    await wire.close()


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer

    def say(self, text: bytes) -> None:
        self._writer.write(text)

    async def is_broken(self) -> bool:
        """Waits for the end of the connection."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True
        finally:
            self._writer.close()


async def connected(wire: Proxy) -> Connection:
    host, _, port = wire.address.rpartition(":")
    return Connection(*await asyncio.open_connection(host, int(port)))


async def forwarding(wire: Proxy) -> Connection:
    """A connection of which both ends are known to be there."""
    connection = await connected(wire)
    connection.say(b"hello")
    assert await connection.reader.readexactly(5) == b"hello"
    return connection


async def test_it_forwards_both_ways(wire: Proxy) -> None:
    connection = await forwarding(wire)
    wire.cut()
    assert await connection.is_broken()


async def test_a_cut_breaks_connections_and_the_next_one_works(wire: Proxy) -> None:
    connection = await forwarding(wire)
    assert wire.cut() == 1
    assert await connection.is_broken()
    again = await forwarding(wire)
    wire.cut()
    assert await again.is_broken()


async def test_while_refusing_no_connection_lasts(wire: Proxy) -> None:
    before = await forwarding(wire)
    wire.set(Mode.REFUSING)
    assert await before.is_broken()
    assert await (await connected(wire)).is_broken()


async def test_without_an_upstream_no_connection_lasts(wire: Proxy) -> None:
    wire.upstream = None
    assert await (await connected(wire)).is_broken()


async def test_a_late_response_arrives_and_nothing_is_cut(wire: Proxy, echo: Echo) -> None:
    connection = await forwarding(wire)
    wire.late_s = 0.01
    wire.set(Mode.LATE)
    connection.say(b"!")
    assert await connection.reader.readexactly(1) == b"!"
    # What is held back longer than any test lasts: the server has it, and its answer has not arrived.
    wire.late_s = 3600
    connection.say(b"?")
    await until(echo.has_heard(b"hello!?"), "the server hears it")
    wire.set(Mode.FORWARDING)
    again = await forwarding(wire)
    assert connection.reader.at_eof() is False
    wire.cut()
    assert await connection.is_broken()
    assert await again.is_broken()


async def test_a_lost_response_leaves_the_request_heard(wire: Proxy, echo: Echo) -> None:
    connection = await forwarding(wire)
    wire.set(Mode.LOSING_ANSWERS)
    connection.say(b"!")
    await until(echo.has_heard(b"hello!"), "the server hears it")
    wire.set(Mode.FORWARDING)
    # The answer never comes: what comes is the end.
    assert await connection.is_broken()


async def test_silence_reaches_nobody(wire: Proxy, echo: Echo) -> None:
    connection = await forwarding(wire)
    wire.set(Mode.SILENT)
    connection.say(b"!")
    wire.set(Mode.FORWARDING)
    assert await connection.is_broken()
    again = await forwarding(wire)
    assert echo.heard == b"hellohello"
    wire.cut()
    assert await again.is_broken()
