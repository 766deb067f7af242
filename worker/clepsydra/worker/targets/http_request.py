"""From the request in a spec to the request that is sent."""

import re
from collections.abc import Iterable
from datetime import datetime
from urllib.parse import quote

from multidict import CIMultiDict
from yarl import URL

from clepsydra.v1.action_pb2 import HttpHeader, HttpRequest
from clepsydra.worker.handlers.context import Context

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
    return url


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
