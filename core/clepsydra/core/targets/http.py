"""An HTTP request: a worker must be able to send it, and its receiver must be able to trust it."""

import ipaddress
import re

from clepsydra.core.limits import PAYLOAD_BYTES
from clepsydra.core.validation.rules import VALID, Violations, both, length, message, repeated, text, violation
from clepsydra.v1.action_pb2 import HttpHeader, HttpRequest

URL_LENGTH = 4096
HTTP_METHOD_LENGTH = 16
HTTP_HEADERS = 64
HTTP_HEADER_NAME_LENGTH = 128
HTTP_HEADER_VALUE_LENGTH = 4096

_URL = re.compile(
    r"""
    (?i:https?) ://
    (?: [0-9A-Za-z._~!$&'()*+,;=:%-]* @ )?                      # a user, and perhaps a password
    (?: [0-9A-Za-z._-]+ | \[ (?P<address>[0-9A-Fa-f:.]+) \] )    # a host, or an IPv6 address
    (?: : (?P<port>[0-9]{1,5}) )?
    (?: [/?\#] [\x21-\x7e]* )?
    """,
    re.VERBOSE,
)

# The worker writes these itself, or they describe the connection, which is the worker's.
_REFUSED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_REFUSED_PREFIX = "clepsydra-"

_NOT_A_URL = violation(
    "must be an absolute http:// or https:// URL with a host, in visible ASCII: encode other characters, and hosts "
    "with them, first"
)
_TOO_LONG = violation(f"must not be longer than {URL_LENGTH} characters")
_TUNNEL = violation("must not be CONNECT, which only opens a tunnel")
_REFUSED_HEADER = violation("must not be a header that describes the connection or that Clepsydra sets itself")


def _url(value: str) -> Violations:
    if len(value) > URL_LENGTH:
        return _TOO_LONG
    match = _URL.fullmatch(value)
    if match is None or (match["port"] is not None and not 0 < int(match["port"]) < 65536):
        return _NOT_A_URL
    if match["address"] is not None:
        try:
            ipaddress.IPv6Address(match["address"])
        except ValueError:
            return _NOT_A_URL
    return VALID


def _method_sends(value: str) -> Violations:
    return _TUNNEL if value == "CONNECT" else VALID


def _header_is_free(value: str) -> Violations:
    lowered = value.lower()
    return _REFUSED_HEADER if lowered in _REFUSED_HEADERS or lowered.startswith(_REFUSED_PREFIX) else VALID


_HEADER = message(
    HttpHeader,
    {
        "name": both(
            text(
                rf"[!#$%&'*+.^_`|~0-9A-Za-z-]{{1,{HTTP_HEADER_NAME_LENGTH}}}",
                f"an HTTP header name of at most {HTTP_HEADER_NAME_LENGTH} characters",
            ),
            _header_is_free,
        ),
        "value": text(
            rf"[\t\x20-\x7e]{{0,{HTTP_HEADER_VALUE_LENGTH}}}",
            f"at most {HTTP_HEADER_VALUE_LENGTH} characters of visible ASCII, blanks and tabs",
        ),
    },
    required=["name"],
)

RULE = message(
    HttpRequest,
    {
        "method": both(
            text(
                rf"[!#$%&'*+.^_`|~0-9A-Z-]{{1,{HTTP_METHOD_LENGTH}}}",
                f"an HTTP method of at most {HTTP_METHOD_LENGTH} characters in upper case, such as PUT",
            ),
            _method_sends,
        ),
        "url": _url,
        "headers": repeated(_HEADER, HTTP_HEADERS),
        "body": length(PAYLOAD_BYTES, "bytes"),
    },
    required=["url"],
)


def fill_in(request: HttpRequest) -> None:
    if not request.method:
        request.method = "POST" if request.body else "GET"


def describe(request: HttpRequest) -> str:
    return f"{request.method or 'GET'} {request.url}"
