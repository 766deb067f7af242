"""Whether an address can be listened on, and why not. gRPC itself gives no reason."""

import errno
import socket
from typing import Any

_HINTS = {
    errno.EADDRINUSE: "another process listens there already; stop it, or choose another address with --listen",
    errno.EACCES: "this process may not; ports below 1024 usually need privileges",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}


class CannotListen(Exception):
    """The address is taken, or not this machine's, or the certificate cannot be used. The message says which."""


def check_address(listen: str, *, share_port: bool = False) -> None:
    """Raise CannotListen, with the reason, if nobody can listen on this address now. `share_port`: beside others."""
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except socket.gaierror as error:
        raise CannotListen(f"cannot listen on {listen}: the host {host!r} is unknown ({error.strerror})") from error
    failures = [failure for family, _, _, _, address in found if (failure := _failure(family, address, share_port))]
    # A host may have an address of a kind that this machine does not use; but none of them may be taken.
    taken = [failure for failure in failures if failure.errno == errno.EADDRINUSE]
    if taken or len(failures) == len(found):
        raise cannot_listen(listen, (taken or failures)[0])


def cannot_listen(listen: str, error: OSError) -> CannotListen:
    hint = _HINTS.get(error.errno or 0)
    reason = error.strerror or str(error)
    return CannotListen(f"cannot listen on {listen}: {f'{hint} ({reason})' if hint else reason}")


def _failure(family: int, address: Any, share_port: bool) -> OSError | None:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As gRPC does: connections that a server has left behind do not matter.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if share_port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None
