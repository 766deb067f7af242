"""What an HTTP target receives, and what its answers mean."""

import asyncio
from email.utils import format_datetime

import pytest
from aiohttp import web

from clepsydra.core.action.attempt import SUCCESS
from clepsydra.core.action.spec import RETRY_DELAY_MAX_US
from clepsydra.core.limits import ERROR_TEXT_LENGTH
from clepsydra.core.times import SECOND_US
from clepsydra.v1.action_pb2 import Attempt
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.targets import Targets
from tests.worker.targets.executing import LIMIT_S, an_attempt, cancelled, execute, executing, http
from tests.worker.targets.serving import Servers


class Recorder:
    """Answers 200 and remembers what it was asked."""

    def __init__(self, body: bytes = b"") -> None:
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.peers: list[tuple[str, int]] = []
        self._body = body

    async def answer(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        self.bodies.append(await request.read())
        assert request.transport is not None
        self.peers.append(request.transport.get_extra_info("peername"))
        return web.Response(body=self._body, headers={"Set-Cookie": "crumb=1"})


async def test_a_request_is_sent_as_its_spec_says(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    url = await servers.answering(recorder.answer)
    spec = http(url + "a%2Fb?x=%41&y", "PATCH", b"\x00body", (("X-Twice", "1"), ("X-Twice", "2"), ("X-Umlaut", "grün")))
    assert await execute(targets, spec) == SUCCESS
    (request,) = recorder.requests
    assert (request.method, request.raw_path) == ("PATCH", "/a%2Fb?x=%41&y")
    assert request.headers.getall("X-Twice") == ["1", "2"]
    assert request.headers["X-Umlaut"] == "grün"
    assert recorder.bodies == [b"\x00body"]


@pytest.mark.parametrize(("body", "method"), [(b"", "GET"), (b"{}", "POST")])
async def test_the_method_follows_from_the_body(targets: Targets, servers: Servers, body: bytes, method: str) -> None:
    recorder = Recorder()
    await execute(targets, http(await servers.answering(recorder.answer), body=body))
    assert recorder.requests[0].method == method


async def test_a_url_that_is_not_encoded_is_encoded(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    await execute(targets, http(await servers.answering(recorder.answer) + "a b/ü"))
    assert recorder.requests[0].raw_path == "/a%20b/%C3%BC"


async def test_the_context_comes_as_headers(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    spec = http(await servers.answering(recorder.answer), headers=(("clepsydra-attempt-number", "99"),))
    await execute(targets, spec, action_id="100% ü\n")
    headers = recorder.requests[0].headers
    told = {name: value for name, value in headers.items() if name.startswith(("Clepsydra", "Idempotency"))}
    assert told == {
        "Idempotency-Key": "guid-1700000000000000",
        "Clepsydra-Action-Id": "100%25%20%C3%BC%0A",
        "Clepsydra-Attempt-Id": "guid-1700000000000000-2",
        "Clepsydra-Attempt-Number": "2",
        "Clepsydra-Occurrence-Time": "2023-11-14T22:13:20.000000Z",
        "Clepsydra-Scheduled-Time": "2023-11-14T22:13:21.500000Z",
        "Clepsydra-Deadline": "2023-11-14T22:14:21.500000Z",
    }
    assert headers["User-Agent"].startswith("clepsydra/")


async def test_the_idempotency_key_is_the_same_for_every_attempt(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    spec = http(await servers.answering(recorder.answer))
    await execute(targets, spec, number=1)
    await execute(targets, spec, number=2)
    assert [request.headers["Idempotency-Key"] for request in recorder.requests] == ["guid-1700000000000000"] * 2
    ids = [request.headers["Clepsydra-Attempt-Id"] for request in recorder.requests]
    assert ids == ["guid-1700000000000000-1", "guid-1700000000000000-2"]


async def test_a_spec_may_bring_its_own_agent_but_not_its_own_key(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    mine = (("idempotency-key", "mine"), ("user-agent", "me/1"))
    await execute(targets, http(await servers.answering(recorder.answer), headers=mine))
    headers = recorder.requests[0].headers
    assert headers.getall("Idempotency-Key") == ["guid-1700000000000000"]
    assert headers.getall("User-Agent") == ["me/1"]


async def test_headers_that_describe_the_connection_are_the_workers(targets: Targets, servers: Servers) -> None:
    recorder = Recorder()
    wrong = (("Content-Length", "99"), ("transfer-encoding", "chunked"), ("Expect", "100-continue"))
    spec = http(await servers.answering(recorder.answer), "POST", b"body", wrong)
    assert await execute(targets, spec) == SUCCESS
    assert recorder.bodies == [b"body"]
    assert recorder.requests[0].headers["Content-Length"] == "4"
    assert "Expect" not in recorder.requests[0].headers


async def test_connections_are_used_again_and_cookies_are_not_kept(targets: Targets, servers: Servers) -> None:
    recorder = Recorder(b"x" * 1000)
    spec = http(await servers.answering(recorder.answer))
    for _ in range(2):
        assert await execute(targets, spec) == SUCCESS
    assert recorder.peers[0] == recorder.peers[1]
    assert "Cookie" not in recorder.requests[1].headers


async def test_a_response_is_read_to_the_limit_and_the_connection_closed(targets: Targets, servers: Servers) -> None:
    closed = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 5000)
        await reader.read()
        closed.set()

    assert await execute(targets, http(await servers.talking(talk))) == SUCCESS
    async with asyncio.timeout(LIMIT_S):
        await closed.wait()


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_2xx_is_success(targets: Targets, servers: Servers, status: int) -> None:
    assert await execute(targets, http(await servers.refusing(status))) == SUCCESS


@pytest.mark.parametrize("status", [408, 429, 500, 501, 502, 503, 504, 599])
async def test_408_429_and_5xx_are_retried(targets: Targets, servers: Servers, status: int) -> None:
    result = await execute(targets, http(await servers.refusing(status, "too\n\n busy")))
    assert (result.outcome, result.retryable, result.retry_after_us) == (Attempt.FAILURE, True, None)
    assert result.error.startswith(f"the target answered {status}")
    assert "busy" not in result.error


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 418, 422, 451, 499])
async def test_other_4xx_fail_for_good(targets: Targets, servers: Servers, status: int) -> None:
    result = await execute(targets, http(await servers.refusing(status, "no such user", Retry_After="5")))
    assert (result.outcome, result.retryable, result.retry_after_us) == (Attempt.FAILURE, False, None)
    assert result.error.startswith(f"the target answered {status}")
    assert result.error.endswith(", which is not retried")
    assert "no such user" not in result.error


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(targets: Targets, servers: Servers, status: int) -> None:
    elsewhere = Recorder()
    location = await servers.answering(elsewhere.answer)
    result = await execute(targets, http(await servers.refusing(status, Location=location)))
    assert (result.outcome, result.retryable) == (Attempt.FAILURE, False)
    assert result.error.endswith(f", to {location}: redirects are not followed, use that URL")
    assert elsewhere.requests == []


async def test_retry_after_in_seconds(targets: Targets, servers: Servers) -> None:
    result = await execute(targets, http(await servers.refusing(503, Retry_After="120")))
    assert result.retry_after_us == 120 * SECOND_US


async def test_retry_after_a_date_counts_from_the_servers_own(targets: Targets, servers: Servers) -> None:
    now = an_attempt(http("")).context.scheduled_time.replace(year=1999, microsecond=0)
    later = format_datetime(now.replace(year=2000), usegmt=True)
    url = await servers.refusing(429, Date=format_datetime(now, usegmt=True), Retry_After=later)
    assert (await execute(targets, http(url))).retry_after_us == RETRY_DELAY_MAX_US
    soon = format_datetime(now.replace(minute=now.minute + 1), usegmt=True)
    url = await servers.refusing(429, Date=format_datetime(now, usegmt=True), Retry_After=soon)
    assert (await execute(targets, http(url))).retry_after_us == 60 * SECOND_US


@pytest.mark.parametrize("settings", [WorkerSettings(http_error_excerpt_bytes=200)])
async def test_an_excerpt_of_an_error_is_shown_if_the_settings_ask_for_it(targets: Targets, servers: Servers) -> None:
    result = await execute(targets, http(await servers.refusing(500, "too\n\n busy " + "x" * 100_000)))
    assert result.error.startswith("the target answered 500 Internal Server Error: too busy xxx")
    assert "x" * 100 in result.error
    assert len(result.error) < 300
    result = await execute(targets, http(await servers.refusing(404, "no such user")))
    assert result.error.endswith(": no such user, which is not retried")
    assert len(result.error) < ERROR_TEXT_LENGTH


async def test_a_redirect_is_shown_without_its_query(targets: Targets, servers: Servers) -> None:
    location = "https://user:pass@login.example.org/start?token=secret"
    result = await execute(targets, http(await servers.refusing(302, Location=location)))
    assert ", to https://login.example.org/start: redirects" in result.error


async def test_a_compressed_body_is_never_unpacked(targets: Targets, servers: Servers) -> None:
    answer = b"HTTP/1.1 %s\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip"
    assert await execute(targets, http(await servers.saying(answer % b"200 OK"))) == SUCCESS
    result = await execute(targets, http(await servers.saying(answer % b"500 Oops")))
    assert result.error == "the target answered 500 Oops"


async def test_proxies_of_the_environment_are_not_used(
    targets: Targets, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    assert await execute(targets, http(await servers.refusing(200))) == SUCCESS


@pytest.mark.parametrize(("method", "times"), [("GET", 2), ("PUT", 2), ("POST", 1), ("PATCH", 1)])
async def test_what_is_safe_to_repeat_is_sent_once_more_over_a_new_connection(
    targets: Targets, servers: Servers, method: str, times: int
) -> None:
    asked: list[bool] = []

    async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        asked.append(True)

    result = await execute(targets, http(await servers.talking(hang_up), method))
    assert result.error == "the target closed the connection without an answer"
    assert len(asked) == times


async def test_a_status_counts_although_its_body_breaks_off(targets: Targets, servers: Servers) -> None:
    url = await servers.saying(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 10\r\n\r\nabc")
    result = await execute(targets, http(url))
    assert (result.error, result.retry_after_us) == ("the target answered 503 Busy", 7 * SECOND_US)


async def test_bytes_that_are_not_text_fit_into_a_status(targets: Targets, servers: Servers) -> None:
    url = await servers.saying(b"HTTP/1.1 500 \xff\x80\r\nContent-Length: 4\r\n\r\n\xff\x1b\x00a")
    result = await execute(targets, http(url))
    assert Attempt.FromString(Attempt(error=result.error).SerializeToString()).error == result.error
    assert "\x1b" not in result.error


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"])
async def test_a_cancelled_call_closes_its_connection(targets: Targets, servers: Servers, start: bytes) -> None:
    asked, closed = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        asked.set()
        await reader.read()
        closed.set()

    running = executing(targets, http(await servers.talking(talk)))
    async with asyncio.timeout(LIMIT_S):
        await asked.wait()
        assert await cancelled(running)
        await closed.wait()
