"""Requests that cannot be sent fail for good; connections that break are tried again."""

import asyncio
import socket
import ssl
import struct
from pathlib import Path

import pytest

from clepsydra.v1.action_pb2 import Attempt
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import execute, http
from tests.worker.targets.serving import Servers


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "its URL does not start with http:// or https:// and a host"),
        ("example.org", "its URL does not start with http:// or https:// and a host"),
        ("ftp://example.org/", "its URL does not start with http:// or https:// and a host"),
        ("http://", "its URL does not start with http:// or https:// and a host"),
        ("http://[::1", "its URL is not valid"),
        ("http://example.org:99999/", "its URL is not valid"),
        ("http://secret:password@example.org:99999/", "its URL is not valid"),
        ("http://" + 64 * "a" + ".example/", "the name of its host is not valid"),
    ],
)
async def test_a_url_that_means_nothing_fails_for_good(targets: Targets, url: str, reason: str) -> None:
    result = await execute(targets, http(url))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, False)
    assert result.error.startswith(f"the request cannot be sent: {reason}")


@pytest.mark.parametrize(
    ("method", "header", "reason"),
    [
        ("GET", ("X", "a\r\nInjected: yes"), "the value of its header X holds a control character"),
        ("GET", ("X", "\x00"), "the value of its header X holds a control character"),
        ("GET", ("X\nY", "a"), r"'X\nY' is not a header's name"),
        ("GET", ("", "a"), "'' is not a header's name"),
        ("GET", ("Grün", "a"), "'Grün' is not a header's name"),
        ("GET /other", ("X", "a"), "'GET /other' is not a method"),
    ],
)
async def test_a_request_that_cannot_be_written_fails_for_good(
    targets: Targets, method: str, header: tuple[str, str], reason: str
) -> None:
    result = await execute(targets, http("http://127.0.0.1:9/", method, headers=(header,)))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, False)
    assert result.error == f"the request cannot be sent: {reason}"


async def test_two_kinds_of_credentials_fail_for_good(targets: Targets) -> None:
    spec = http("http://user:secret@127.0.0.1:9/", headers=(("Authorization", "Bearer x"),))
    result = await execute(targets, spec)
    assert not result.retryable
    assert "secret" not in result.error


async def test_nobody_listens(targets: Targets) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        result = await execute(targets, http(f"http://127.0.0.1:{port}/"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error == f"no connection to 127.0.0.1:{port}: Connection refused"


async def test_no_such_host(targets: Targets) -> None:
    result = await execute(targets, http("http://user:secret@clepsydra.invalid/"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error.startswith("the host clepsydra.invalid could not be resolved: ")
    assert "secret" not in result.error


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "the target closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "the target's response broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "the target's response broke off"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "the target's response is not HTTP: Bad status line"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", "the target's response is not HTTP: Got more than"),
    ],
)
async def test_a_broken_response_is_retried(targets: Targets, servers: Servers, answer: bytes, error: str) -> None:
    result = await execute(targets, http(await servers.saying(answer), "POST"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error.startswith(error)


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"])
async def test_a_reset_is_retried(targets: Targets, servers: Servers, start: bytes) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        # To close without lingering sends a reset instead of an end.
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    result = await execute(targets, http(await servers.talking(talk), "POST"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error in {
        "the connection to the target broke: Connection reset by peer",
        "the target closed the connection without an answer",
        "the target's response broke off",
    }


async def test_a_certificate_that_nobody_vouches_for(targets: Targets, servers: Servers) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(Path(__file__).with_name("untrusted.pem"))
    url = await servers.talking(talk, tls)
    result = await execute(targets, http(url))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error.startswith(f"the certificate of {url[8:-1]} is not trusted: ")


async def test_tls_with_a_server_that_speaks_none(targets: Targets, servers: Servers) -> None:
    async def reply_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(reply_at_once, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        result = await execute(targets, http(f"https://127.0.0.1:{port}/"))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, True)
    assert result.error.startswith(f"TLS with 127.0.0.1:{port} failed: ")
