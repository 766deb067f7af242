"""gRPC's health and reflection services, received within the same limits as the service itself.

They come from gRPC's own packages, whose handlers hold unfinished requests and answer unreadable ones with UNKNOWN.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2
from grpc_reflection.v1alpha._async import ReflectionServicer
from grpc_status import rpc_status

from clepsydra.scheduler.api.grpc_status import status_of
from clepsydra.scheduler.api.parsing import check_small, parse
from clepsydra.scheduler.api.reception import Reception
from clepsydra.scheduler.errors import Overloaded, SchedulerError

# Health checks, their watchers, and reflection, at once.
_CALLS_MAX = 100


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


class Introspection:
    """The methods of both services, as gRPC calls them."""

    def __init__(self, health_servicer: Health, services: Iterable[str], reception: Reception) -> None:
        self._health = health_servicer
        self._reflection = ReflectionServicer((*services, health.SERVICE_NAME, reflection.SERVICE_NAME))
        self._reception = reception
        self._calls = 0

    def handlers(self) -> "tuple[grpc.GenericRpcHandler[bytes, bytes], ...]":
        encode = health_pb2.HealthCheckResponse.SerializeToString
        checks = {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, None, encode),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, None, encode),
        }
        info = grpc.stream_stream_rpc_method_handler(
            self._info, None, reflection_pb2.ServerReflectionResponse.SerializeToString
        )
        return (
            grpc.method_handlers_generic_handler(health.SERVICE_NAME, checks),
            grpc.method_handlers_generic_handler(reflection.SERVICE_NAME, {"ServerReflectionInfo": info}),
        )

    async def _check(self, _requests: Any, context: Any) -> Any:
        async with self._call(context):
            return await self._health.Check(await self._receive(health_pb2.HealthCheckRequest, context), context)

    async def _watch(self, _requests: Any, context: Any) -> None:
        async with self._call(context):
            await self._health.Watch(await self._receive(health_pb2.HealthCheckRequest, context), context)

    async def _info(self, _requests: Any, context: Any) -> None:
        async with self._call(context):
            async for answer in self._reflection.ServerReflectionInfo(self._questions(context), context):
                await context.write(answer)

    async def _questions(self, context: Any) -> AsyncIterator[Any]:
        while (raw := await self._reception.receive_next(context)) is not None:
            check_small(raw)
            yield parse(reflection_pb2.ServerReflectionRequest, raw)

    async def _receive(self, request_type: Any, context: Any) -> Any:
        raw = await self._reception.receive(context)
        check_small(raw)
        return parse(request_type, raw)

    @asynccontextmanager
    async def _call(self, context: Any) -> AsyncIterator[None]:
        """Count a call, and answer it with a status if it is refused."""
        self._calls += 1
        try:
            if self._calls > _CALLS_MAX:
                raise Overloaded("the scheduler has too many health checks and reflections under way already")
            yield
        except SchedulerError as error:
            await context.abort_with_status(rpc_status.to_status(status_of(error)))
        finally:
            self._calls -= 1
