"""The connections of a server, as the kernel knows them: how much came over each, and how to end one.

gRPC tells its handlers the address of a peer and nothing else, and has no way to end a connection. On Linux the sockets
of this process can be found by their descriptors. On other systems nothing is found, and what depends on it does not
happen.
"""

import contextlib
import heapq
import ipaddress
import os
import socket
import stat
import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

_DESCRIPTORS = "/proc/self/fd"

# Its place in the kernel's `struct tcp_info`, which only grows at its end.
_BYTES_RECEIVED = struct.Struct("=128xQ")
_TCP_INFO_BYTES = 136


class Peer(NamedTuple):
    host: str
    port: int


class Connections:
    """The connections to one port of this process."""

    def __init__(self, port: int) -> None:
        self._port = port
        # Where a connection was found the last time; the descriptor may be another's by now.
        self._descriptors: dict[Peer, int] = {}

    def received_bytes(self, peer: Peer) -> int | None:
        """None if there is no such connection, or the system does not tell."""
        with self._found(peer) as connection:
            return None if connection is None else _received_bytes(connection)

    def end(self, peer: Peer) -> bool:
        """End the connection, as if its peer had; gRPC ends the calls on it. False if it is not found."""
        with self._found(peer) as connection:
            if connection is None:
                return False
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            return True

    def make_room(self, count_max: int) -> int:
        """End connections until no more than these are left; returns how many were ended.

        Each is one of the host with the most connections, and the one over which the least has come.
        """
        if len(_descriptors()) <= count_max:
            # There are never more connections than descriptors, and these are cheap to count.
            return 0
        hosts: dict[str, list[tuple[int, Peer]]] = defaultdict(list)
        for peer, received_bytes in self._look().items():
            heapq.heappush(hosts[peer.host], (received_bytes, peer))
        ended = 0
        for _ in range(sum(map(len, hosts.values())) - count_max):
            _, peer = heapq.heappop(max(hosts.values(), key=len))
            ended += self.end(peer)
        return ended

    @contextlib.contextmanager
    def _found(self, peer: Peer) -> Iterator[socket.socket | None]:
        """A second descriptor of the connection, so that it cannot become another connection meanwhile."""
        if peer not in self._descriptors:
            self._look()
        connection = self._open(self._descriptors.get(peer, -1))
        try:
            if connection is None or _peer_of(connection) != peer:
                self._descriptors.pop(peer, None)
                yield None
            else:
                yield connection
        finally:
            if connection is not None:
                connection.close()

    def _look(self) -> dict[Peer, int]:
        """Find all connections, and what came over each."""
        self._descriptors = {}
        found: dict[Peer, int] = {}
        for descriptor in _descriptors():
            connection = self._open(descriptor)
            if connection is not None:
                with connection:
                    peer, received_bytes = _peer_of(connection), _received_bytes(connection)
                if peer is not None and received_bytes is not None:
                    self._descriptors[peer] = descriptor
                    found[peer] = received_bytes
        return found

    def _open(self, descriptor: int) -> socket.socket | None:
        try:
            # Nothing but sockets is copied: closing a copy of a file's descriptor drops all POSIX locks of this process
            # on that file, and the next process that closes the SQLite store would delete its log as the last one.
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return None
            copied = os.dup(descriptor)
        except OSError:
            return None
        try:
            connection = socket.socket(fileno=copied)
        except OSError:
            os.close(copied)
            return None
        try:
            if connection.family in {socket.AF_INET, socket.AF_INET6} and connection.getsockname()[1] == self._port:
                return connection
        except OSError:
            pass
        connection.close()
        return None


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_DESCRIPTORS)]
    except OSError:
        return []


def peer_of(name: str) -> Peer | None:
    """A peer as gRPC writes it.

    >>> peer_of("ipv4:127.0.0.1:53412"), peer_of("ipv6:%5B::1%5D:53412")
    (Peer(host='127.0.0.1', port=53412), Peer(host='::1', port=53412))
    >>> peer_of("unix:")
    """
    _, _, address = unquote(name).partition(":")
    host, _, port = address.rpartition(":")
    return Peer(host.strip("[]"), int(port)) if port.isdecimal() else None


def _peer_of(connection: socket.socket) -> Peer | None:
    """None for a socket that listens, or that has been closed by its peer."""
    try:
        host, port = connection.getpeername()[:2]
    except OSError:
        return None
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return Peer(str(mapped or host), port)


def _received_bytes(connection: socket.socket) -> int | None:
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    except (AttributeError, OSError):
        return None
    if len(info) < _TCP_INFO_BYTES:
        return None
    received_bytes: int = _BYTES_RECEIVED.unpack_from(info)[0]
    return received_bytes
