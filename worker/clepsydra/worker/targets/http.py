"""Executes HTTP requests.

A response is read up to a limit and never decompressed, redirects are not followed, cookies are not kept, and neither
proxies nor credentials are taken from the worker's environment: a request goes exactly where its spec says, with
exactly what its spec says. There is no timeout here: the attempt's deadline cancels the call, which closes its
connection.
"""

import re
from asyncio import CancelledError
from collections.abc import Iterable, Sequence
from datetime import datetime
from http import HTTPStatus
from importlib.metadata import version
from urllib.parse import quote, urlsplit, urlunsplit

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)
from aiohttp.resolver import AsyncResolver
from multidict import CIMultiDict
from yarl import URL

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.v1.action_pb2 import Attempt, HttpHeader, HttpRequest
from clepsydra.worker.capacity import Needs
from clepsydra.worker.running import Context, Group
from clepsydra.worker.targets import Resources
from clepsydra.worker.targets.failures import failure
from clepsydra.worker.targets.hosts import Hosts
from clepsydra.worker.targets.http_errors import describe_connection_error
from clepsydra.worker.targets.retry_after import retry_after_us

# Common servers close idle connections after 5 seconds; a request sent at that moment would fail for no reason.
_KEEP_ALIVE_S = 4.0
_RETRIED_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


# The longest label of a DNS name.
_LABEL_LENGTH = 63
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ENCODED_URL = re.compile(r"[!#$%&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
_PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")

# The HTTP client writes the headers that describe the connection or the framing of the body. With a wrong length, the
# rest of one request would become the beginning of the next.
_CONNECTION_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class UnsendableRequest(Exception):
    """The request cannot be sent, and no retry will change that."""


class Executor:
    """Its session is opened by the first request: many workers never send one."""

    is_eager = False

    def __init__(self, resources: Resources) -> None:
        self._response_bytes = resources.settings.http_response_bytes
        self._connections = resources.settings.http_connections
        self._opened: ClientSession | None = None
        self._resolver: AsyncResolver | None = None
        self._excerpt_bytes = resources.settings.http_error_excerpt_bytes
        self._hosts = Hosts(resources.settings, resources.capacity, resources.tally, resources.log)

    @property
    def _session(self) -> ClientSession:
        if self._opened is None:
            # The loop's own look-ups would take a thread each, of a few, for as long as a name is not answered.
            self._resolver = AsyncResolver()
            self._opened = ClientSession(
                connector=TCPConnector(
                    limit=self._connections, keepalive_timeout=_KEEP_ALIVE_S, resolver=self._resolver
                ),
                cookie_jar=DummyCookieJar(),
                headers={"User-Agent": f"clepsydra/{version('clepsydra')}", "Accept-Encoding": "identity"},
                timeout=ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                trust_env=False,
            )
        return self._opened

    def needs(self, request: HttpRequest) -> Needs:
        return self._hosts.of(request.url).needs

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
        if self._resolver is not None:
            # Otherwise answers that come after the end of the event loop would find it closed.
            await self._resolver.close()

    async def execute(self, group: Group) -> Sequence[Result]:
        [running] = group
        host = self._hosts.of(running.attempt.target.url)
        started_in_round = host.round
        try:
            result = await self._send(running.attempt.target, running.context)
        except (UnsendableRequest, InvalidURL) as error:
            reason = str(error) if isinstance(error, UnsendableRequest) else "its URL is not valid"
            return (failure(f"the request cannot be sent: {reason}", retryable=False),)
        except (ClientError, OSError) as error:
            result = failure(describe_connection_error(error))
            self._hosts.failed(host, started_in_round, result.error, has_answered=False)
            return (result,)
        except ValueError as error:
            return (failure(f"the request cannot be sent: {error}", retryable=False),)
        except CancelledError:
            if running.cancelled_with is not None and running.cancelled_with.outcome == Attempt.TIMEOUT:
                self._hosts.failed(host, started_in_round, running.cancelled_with.error, has_answered=False)
            raise
        if result.retryable and result is not SUCCESS:
            self._hosts.failed(host, started_in_round, result.error, has_answered=True)
        else:
            self._hosts.succeeded(host)
        return (result,)

    async def _send(self, request: HttpRequest, context: Context) -> Result:
        async with self._session.request(
            method_of(request),
            url_of(request.url),
            headers=headers_of(request.headers, context),
            data=request.body or None,
            allow_redirects=False,
        ) as response:
            if 200 <= response.status < 300:
                await self._read(response)
                return SUCCESS
            return await self._refused(response, context)

    async def _refused(self, response: ClientResponse, context: Context) -> Result:
        excerpt = await self._excerpt(response)
        status = response.status
        text = f"the target answered {status} {response.reason or ''}".rstrip()
        if 300 <= status < 400:
            location = place_of(response.headers.get("Location", ""))
            return failure(f"{text}, to {location}: redirects are not followed, use that URL", retryable=False)
        if excerpt:
            text = f"{text}: {excerpt}"
        if status in _RETRIED_STATUSES or status >= 500:
            return failure(text, retry_after_us=retry_after_us(response.headers, context.scheduled_us))
        return failure(f"{text}, which is not retried", retryable=False)

    async def _excerpt(self, response: ClientResponse) -> str:
        try:
            start = await self._read(response)
        except (ClientError, OSError):
            # The status says enough; a body that breaks off after it changes nothing.
            return ""
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            return ""
        return " ".join(start.decode("utf-8", "replace").split())

    async def _read(self, response: ClientResponse) -> bytes:
        """Read a body to its end, so that the connection can be used again, or to the limit, and close it there.

        Returns its start.
        """
        start = b""
        size = 0
        while chunk := await response.content.readany():
            size += len(chunk)
            if len(start) < self._excerpt_bytes:
                start = (start + chunk)[: self._excerpt_bytes]
            if size > self._response_bytes:
                response.close()
                break
        return start


def method_of(request: HttpRequest) -> str:
    if not request.method:
        return "POST" if request.body else "GET"
    if not _TOKEN.fullmatch(request.method):
        raise UnsendableRequest(f"{request.method!r} is not a method")
    return request.method


def url_of(text: str) -> URL:
    """The URL exactly as given if it is properly encoded, because it may be signed; otherwise encoded."""
    try:
        url = URL(text, encoded=_ENCODED_URL.fullmatch(text) is not None)
        port = url.port
    except ValueError as error:
        raise UnsendableRequest("its URL is not valid") from error
    if url.scheme not in ("http", "https") or not url.raw_host or not port:
        raise UnsendableRequest("its URL does not start with http:// or https:// and a host")
    if not all(0 < len(label) <= _LABEL_LENGTH for label in url.raw_host.rstrip(".").split(".")):
        raise UnsendableRequest("the name of its host is not valid")
    return url


def place_of(location: str) -> str:
    """Where a redirect leads, without the query, which may hold secrets.

    >>> place_of("https://user:pass@login.example.org/start?token=secret")
    'https://login.example.org/start'
    """
    try:
        parts = urlsplit(location)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) or "an unnamed place"
    except ValueError:
        return "an unnamed place"


def headers_of(given: Iterable[HttpHeader], context: Context) -> CIMultiDict[str]:
    """The spec's headers, and those that describe the attempt, which a spec cannot bring."""
    headers: CIMultiDict[str] = CIMultiDict()
    for header in given:
        _check(header)
        if header.name.lower() not in _CONNECTION_HEADERS:
            headers.add(header.name, header.value)
    headers["Idempotency-Key"] = context.idempotency_key
    headers["Clepsydra-Action-Id"] = _ascii(context.action_id)
    headers["Clepsydra-Attempt-Id"] = context.attempt_id
    headers["Clepsydra-Attempt-Number"] = str(context.attempt_number)
    headers["Clepsydra-Scheduled-Time"] = _rfc3339(context.scheduled_time)
    headers["Clepsydra-Occurrence-Time"] = _rfc3339(context.occurrence_time)
    headers["Clepsydra-Deadline"] = _rfc3339(context.deadline)
    return headers


def _check(header: HttpHeader) -> None:
    if not _TOKEN.fullmatch(header.name):
        raise UnsendableRequest(f"{header.name!r} is not a header's name")
    if _CONTROL.search(header.value):
        raise UnsendableRequest(f"the value of its header {header.name} holds a control character")


def _ascii(action_id: str) -> str:
    """Ids may hold any character, headers only ASCII: other characters, and the percent sign, are percent-encoded."""
    return quote(action_id, safe=_PRINTABLE_ASCII)


def _rfc3339(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
