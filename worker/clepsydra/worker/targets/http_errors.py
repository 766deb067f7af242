"""Connection errors between a worker and an HTTP server, each as one sentence.

The URL is left out: it is in the spec already, and it may hold credentials.
"""

import os

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientPayloadError,
    ClientResponseError,
    ClientSSLError,
    ServerDisconnectedError,
)


def describe_connection_error(error: Exception) -> str:
    if isinstance(error, ClientConnectorError):
        return _could_not_connect(error)
    if isinstance(error, ServerDisconnectedError):
        return "the target closed the connection without an answer"
    if isinstance(error, ClientPayloadError):
        return "the target's response broke off"
    if isinstance(error, ClientResponseError):
        return f"the target's response is not HTTP: {error.message.partition(':')[0]}"
    if isinstance(error, OSError):
        return f"the connection to the target broke: {error.strerror or type(error).__name__}"
    return f"the request failed: {type(error).__name__}"


def _could_not_connect(error: ClientConnectorError) -> str:
    place = f"{error.host}:{error.port}"
    if isinstance(error, ClientConnectorDNSError):
        return f"the host {error.host} could not be resolved: {_reason(error.os_error)}"
    if isinstance(error, ClientConnectorCertificateError):
        return f"the certificate of {place} is not trusted: {_reason(error.certificate_error)}"
    if isinstance(error, ClientSSLError):
        return f"TLS with {place} failed: {_reason(error.os_error)}"
    errno = error.os_error.errno
    return f"no connection to {place}: {os.strerror(errno) if errno else error.os_error}"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
