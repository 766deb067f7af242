"""Executes HTTP requests.

A response is read up to a limit and never decompressed, redirects are not followed, cookies are not kept, and neither
proxies nor credentials are taken from the worker's environment: a request goes exactly where its spec says, with
exactly what its spec says. There is no timeout here: the attempt's deadline cancels the call, which closes its
connection.
"""

from collections.abc import Sequence
from http import HTTPStatus
from importlib.metadata import version

from aiohttp import (
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)

from clepsydra.core.action.attempt import SUCCESS, Result
from clepsydra.v1.action_pb2 import HttpRequest
from clepsydra.worker.handlers.context import Context
from clepsydra.worker.targets import Resources
from clepsydra.worker.targets.failures import failure
from clepsydra.worker.targets.http_errors import describe_connection_error
from clepsydra.worker.targets.http_request import UnsendableRequest, headers_of, method_of, url_of
from clepsydra.worker.targets.retry_after import retry_after_us
from clepsydra.worker.targets.running import Group

# Common servers close idle connections after 5 seconds; a request sent at that moment would fail for no reason.
_KEEP_ALIVE_S = 4.0
# How much of an error's body is shown.
_EXCERPT_BYTES = 512
_RETRIED_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})


class Executor:
    """Its session is opened by the first request: many workers never send one."""

    def __init__(self, resources: Resources) -> None:
        self._response_bytes = resources.settings.http_response_bytes
        self._connections = resources.settings.http_connections
        self._opened: ClientSession | None = None

    @property
    def _session(self) -> ClientSession:
        if self._opened is None:
            self._opened = ClientSession(
                connector=TCPConnector(limit=self._connections, keepalive_timeout=_KEEP_ALIVE_S),
                cookie_jar=DummyCookieJar(),
                headers={"User-Agent": f"clepsydra/{version('clepsydra')}", "Accept-Encoding": "identity"},
                timeout=ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                trust_env=False,
            )
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def execute(self, group: Group) -> Sequence[Result]:
        [running] = group
        return (await self._execute(running.attempt.target, running.context),)

    async def _execute(self, request: HttpRequest, context: Context) -> Result:
        try:
            return await self._send(request, context)
        except (UnsendableRequest, InvalidURL) as error:
            reason = str(error) if isinstance(error, UnsendableRequest) else "its URL is not valid"
            return failure(f"the request cannot be sent: {reason}", retryable=False)
        except (ClientError, OSError) as error:
            return failure(describe_connection_error(error))
        except ValueError as error:
            return failure(f"the request cannot be sent: {error}", retryable=False)

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
            location = response.headers.get("Location", "an unnamed place")
            return failure(f"{text}, to {location}: redirects are not followed, use that URL", retryable=False)
        if excerpt:
            text = f"{text}: {excerpt}"
        if status in _RETRIED_STATUSES or status >= 500:
            return failure(text, retry_after_us=retry_after_us(response.headers, context.scheduled_us))
        return failure(text, retryable=False)

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
            if len(start) < _EXCERPT_BYTES:
                start = (start + chunk)[:_EXCERPT_BYTES]
            if size > self._response_bytes:
                response.close()
                break
        return start
