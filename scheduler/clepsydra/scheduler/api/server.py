"""A gRPC server around a scheduler: listening, the limits of connections, and a graceful stop."""

import asyncio
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health_pb2

from clepsydra.core.limits import METADATA_BYTES, REQUEST_BYTES
from clepsydra.scheduler.api.connections import Connections
from clepsydra.scheduler.api.endpoint import SERVICE, Endpoint
from clepsydra.scheduler.api.introspection import Health, Introspection
from clepsydra.scheduler.api.listening import CannotListen, check_address
from clepsydra.scheduler.api.reception import Reception, ReceptionBounds
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings

_log = structlog.get_logger(__name__)

# Calls that were cut off get this long to hear from the store before it is closed.
_LAST_ANSWERS_S = 1.0

_ROOM_INTERVAL_S = 0.1

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    # No compression of requests: a message of one megabyte could become one of a gigabyte.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    # A connection must say within ten seconds that it speaks HTTP/2.
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.http2.settings_timeout", 10_000),
    # Detects within about a minute a connection that a proxy has dropped.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Idle clients may send a keepalive ping every ten seconds.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
]


class RunningServer:
    def __init__(
        self,
        server: Any,
        health_servicer: Health,
        scheduler: Scheduler,
        address: str,
        making_room: "asyncio.Task[None]",
    ) -> None:
        self.address = address
        self._making_room = making_room
        self._server = server
        self._health = health_servicer
        self._scheduler = scheduler

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    async def stop(self, grace_s: float) -> None:
        """Accept no more calls, finish those under way, and cut off those that outlast the grace."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + grace_s
        self._making_room.cancel()
        await self._health.stop()
        await self._server.stop(grace_s)
        try:
            async with asyncio.timeout_at(max(end_s, loop.time() + _LAST_ANSWERS_S)):
                await self._scheduler.close()
        except TimeoutError:
            _log.warning("stopped while the store did not answer: the last changes may or may not have been written")

    async def wait(self) -> None:
        """Return when the server has stopped."""
        await self._server.wait_for_termination()


async def serve(scheduler: Scheduler, settings: SchedulerSettings, *, share_port: bool = False) -> RunningServer:
    """Start listening; raises CannotListen.

    Without `share_port`, a second scheduler on the same port fails to start instead of taking half of the connections.
    """
    options = [
        *_OPTIONS,
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        # Without this limit, a connection that opens calls and resets them at once takes gigabytes.
        ("grpc.max_concurrent_streams", settings.max_calls_per_connection),
        ("grpc.so_reuseport", int(share_port)),
    ]
    check_address(settings.listen, share_port=share_port)
    server = grpc.aio.server(options=options)
    port = _listen(server, settings)
    connections = Connections(port)
    bounds = ReceptionBounds(settings.unfinished_calls, settings.unfinished_bytes, settings.receive_timeout_ms / 1000)
    reception = Reception(bounds, connections)
    health = Health()
    await health.set(SERVICE.full_name, health_pb2.HealthCheckResponse.SERVING)
    introspection = Introspection(health, [SERVICE.full_name], reception)
    server.add_generic_rpc_handlers((Endpoint(scheduler, settings, reception).handlers(), *introspection.handlers()))
    await server.start()
    making_room = asyncio.create_task(_make_room(connections, settings.max_connections))
    address = f"{settings.listen.rpartition(':')[0]}:{port}"
    return RunningServer(server, health, scheduler, address, making_room)


async def _make_room(connections: Connections, count_max: int) -> None:
    """Keep some connections free, so that those of one host, or silent ones, do not keep out all others."""
    while True:
        await asyncio.sleep(_ROOM_INTERVAL_S)
        ended = connections.make_room(count_max * 3 // 4)
        if ended:
            _log.warning("there are too many connections: some are ended", ended=ended)


def _listen(server: Any, settings: SchedulerSettings) -> int:
    credentials = _credentials(settings)
    try:
        if credentials is None:
            port: int = server.add_insecure_port(settings.listen)
        else:
            port = server.add_secure_port(settings.listen, credentials)
    except RuntimeError as error:
        # The address could be bound a moment ago. With TLS, the certificate and its key are the other reason.
        hint = "" if credentials is None else "; do the certificate and its key belong together?"
        raise CannotListen(f"cannot listen on {settings.listen}: {error}{hint}") from error
    return port


def _credentials(settings: SchedulerSettings) -> Any:
    if settings.tls_cert_file is None or settings.tls_key_file is None:
        return None
    try:
        pair = (settings.tls_key_file.read_bytes(), settings.tls_cert_file.read_bytes())
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {settings.listen}: the file {error.filename} cannot be read ({error.strerror})"
        ) from error
    return grpc.ssl_server_credentials([pair])
