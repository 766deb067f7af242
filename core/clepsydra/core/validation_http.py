"""What an HTTP request must be for a worker to be able to send it, and for its receiver to be able to trust it."""

import ipaddress
import re

from clepsydra.core import limits
from clepsydra.core.validation_rules import FINE, Violations, both, length, message, repeated, text, wrong
from clepsydra.v1.action_pb2 import HttpHeader, HttpRequest

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

# They describe the connection or the framing, which are the worker's business, or are written by the worker itself.
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

_NOT_A_URL = wrong(
    "must be an absolute http:// or https:// URL with a host, in visible ASCII: encode other characters, and hosts "
    "with them, first"
)
_TOO_LONG = wrong(f"must not be longer than {limits.URL_LENGTH} characters")
_TUNNEL = wrong("must not be CONNECT, which opens a tunnel and carries nothing out")
_REFUSED_HEADER = wrong("must not be a header that describes the connection or that Clepsydra sets itself")


def _url(value: str) -> Violations:
    if len(value) > limits.URL_LENGTH:
        return _TOO_LONG
    match = _URL.fullmatch(value)
    if match is None or not _port_exists(match["port"]) or not _address_exists(match["address"]):
        return _NOT_A_URL
    return FINE


def _port_exists(port: str | None) -> bool:
    return port is None or 0 < int(port) < 65536


def _address_exists(address: str | None) -> bool:
    if address is None:
        return True
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


def _method_sends(value: str) -> Violations:
    return _TUNNEL if value == "CONNECT" else FINE


def _header_is_free(value: str) -> Violations:
    lowered = value.lower()
    return _REFUSED_HEADER if lowered in _REFUSED_HEADERS or lowered.startswith(_REFUSED_PREFIX) else FINE


_HEADER = message(
    HttpHeader,
    {
        "name": both(
            text(
                rf"[!#$%&'*+.^_`|~0-9A-Za-z-]{{1,{limits.HTTP_HEADER_NAME_LENGTH}}}",
                f"an HTTP header name of at most {limits.HTTP_HEADER_NAME_LENGTH} characters",
            ),
            _header_is_free,
        ),
        "value": text(
            rf"[\t\x20-\x7e]{{0,{limits.HTTP_HEADER_VALUE_LENGTH}}}",
            f"at most {limits.HTTP_HEADER_VALUE_LENGTH} characters of visible ASCII, blanks and tabs",
        ),
    },
    required=["name"],
)

HTTP_REQUEST = message(
    HttpRequest,
    {
        "method": both(
            text(
                rf"[!#$%&'*+.^_`|~0-9A-Z-]{{1,{limits.HTTP_METHOD_LENGTH}}}",
                f"an HTTP method of at most {limits.HTTP_METHOD_LENGTH} characters in upper case, such as PUT",
            ),
            _method_sends,
        ),
        "url": _url,
        "headers": repeated(_HEADER, limits.HTTP_HEADERS),
        "body": length(limits.PAYLOAD_BYTES, "bytes"),
    },
    required=["url"],
)
