"""A gRPC server around a scheduler: listening, health, reflection, and a graceful stop."""

import asyncio
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from clepsydra.core.limits import REQUEST_BYTES
from clepsydra.scheduler.api.endpoint import SERVICE, Endpoint
from clepsydra.scheduler.api.listening import CannotListen, check_address
from clepsydra.scheduler.service import Scheduler
from clepsydra.scheduler.settings import SchedulerSettings

_log = structlog.get_logger(__name__)

# Calls that were cut off get this long to hear from the store before it is closed.
_LAST_ANSWERS_S = 1.0

# Room for health checks, their watchers, and reflection, beside the calls.
_OTHER_CALLS = 100

_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", REQUEST_BYTES),
    # Detects within about a minute a connection that a proxy has dropped.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # Idle clients may send a keepalive ping every ten seconds.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
]


class RunningServer:
    def __init__(self, server: Any, health_servicer: "Health", scheduler: Scheduler, address: str) -> None:
        self.address = address
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


class Health(health.aio.HealthServicer):  # type: ignore[name-defined,misc]  # its types leave it out
    """gRPC's health service, which also ends its watchers when the server stops: they would use up the whole grace."""

    def __init__(self) -> None:
        super().__init__()
        self._stopping = asyncio.Event()

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802  # gRPC's name
        watching = asyncio.create_task(super().Watch(request, context))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((watching, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            stopping.cancel()

    async def stop(self) -> None:
        await self.enter_graceful_shutdown()
        self._stopping.set()


async def serve(scheduler: Scheduler, settings: SchedulerSettings, *, share_port: bool = False) -> RunningServer:
    """Start listening; raises CannotListen.

    Without `share_port`, a second scheduler on the same port fails to start instead of taking half of the connections.
    """
    options = [*_OPTIONS, ("grpc.so_reuseport", int(share_port))]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=settings.max_concurrent_calls + _OTHER_CALLS)
    server.add_generic_rpc_handlers((Endpoint(scheduler, settings).handlers(),))
    health_servicer = Health()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    await health_servicer.set(SERVICE.full_name, health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection((SERVICE.full_name, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    check_address(settings.listen, share_port=share_port)
    port = _listen(server, settings)
    await server.start()
    return RunningServer(server, health_servicer, scheduler, f"{settings.listen.rpartition(':')[0]}:{port}")


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
